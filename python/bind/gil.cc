#include "gil.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace packtrain::bind {
namespace {

std::atomic<bool> leaving = false;
std::thread::id leaver;          // written before `leaving`
std::atomic<int> returning = 0;  // threads on the way to the lock

// In a child none of the others is there, whatever they were about to do.
const int told_of_forks = pthread_atfork(nullptr, nullptr, [] {
  leaving.store(false);
  returning.store(0);
});

}  // namespace

void begin_leaving() {
  static_cast<void>(told_of_forks);
  leaver = std::this_thread::get_id();
  leaving.store(true);
  // The lock is free, so each of them gets it as soon as whoever has it gives it up.
  while (returning.load() > 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

bool is_leaving() { return leaving.load(); }

void begin_return() {
  ++returning;  // before the question, which the leaver asks the other way round
  if (!leaving.load() || std::this_thread::get_id() == leaver) return;
  --returning;
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

void end_return() { --returning; }

}  // namespace packtrain::bind
