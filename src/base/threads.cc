#include "base/threads.h"

#include <pthread.h>

#include <csignal>
#include <exception>
#include <string>
#include <system_error>

#include "base/mutex.h"

namespace packtrain {

Status Threads::start(std::string_view name, std::function<void()> body) {
  // Blocked around the creation, because a new thread inherits the mask; put back even if there can be no
  // thread.
  struct Blocked {
    Blocked() {
      sigset_t all;
      sigfillset(&all);
      // What a thread's own instruction raises cannot wait: blocked, it ends the process past every handler.
      for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) sigdelset(&all, fault);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  };
  try {
    const Blocked blocked;
    threads_.emplace_back(std::move(body));
  } catch (const std::system_error& error) {
    return Status(Code::no_room,
                  "the system starts no more threads (" + error.code().message() +
                      "): use fewer of them, or raise what is allowed (ulimit -u and -v, pids.max "
                      "of the cgroup)");
  }
  pthread_setname_np(threads_.back().native_handle(), std::string(name.substr(0, 15)).c_str());
  return {};
}

void Threads::join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void run_on(std::string_view name, uint32_t workers, const std::function<void(uint32_t worker)>& body) {
  Mutex mutex;
  std::exception_ptr trouble;  // of whichever worker met it first
  const auto work = [&](uint32_t worker) {
    try {
      body(worker);
    } catch (...) {
      const Lock lock(mutex);
      if (!trouble) trouble = std::current_exception();
    }
  };
  Threads threads;
  for (uint32_t worker = 1; worker < workers; ++worker) {
    if (!threads.start(name, [&work, worker] { work(worker); }).ok()) break;
  }
  work(0);
  threads.join();
  if (trouble) std::rethrow_exception(trouble);
}

}  // namespace packtrain
