#include "io/open_files.h"

#include <sys/resource.h>

namespace packtrain {

void raise_open_files() {
  const int error = errno;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  errno = error;
}

uint64_t most_open_files() {
  constexpr uint64_t kUsual = 1024;
  rlimit files{};
  return ::getrlimit(RLIMIT_NOFILE, &files) == 0 ? uint64_t{files.rlim_max} : kUsual;
}

}  // namespace packtrain
