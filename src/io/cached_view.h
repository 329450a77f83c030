// Looking at what the kernel has in memory already, without copying it.
#pragma once

#include <memory>
#include <string_view>

#include "packtrain/storage.h"

namespace packtrain {

class PosixFile;

// A stretch of a file that is in the page cache, mapped. A file that is cut while it is looked at does not
// end the process: from the first byte that is missing on, zeros are seen, and cut() is true. What was made
// of the bytes counts only if cut() is false afterwards. Thread-safe; the file must outlive it. Costs a call
// or two, and a page fault for every 64 KiB that are touched, where reading costs a call for every stretch.
//
// While there are views, SIGBUS has a handler, which leaves faults elsewhere, and signals that were sent, to
// whoever had the signal before.
class CachedView {
 public:
  // The stretch must lie within the file. Null where not all of it is in memory, where the kernel does not
  // tell, over a network, where this thread blocks SIGBUS, and for files that are not of the POSIX storage.
  static std::unique_ptr<CachedView> of(const File& file, uint64_t offset, uint64_t bytes);
  // All of a file, to copy() from whatever of it is in memory when that is asked for. Null where the kernel
  // does not tell this user what is (who neither owns the file nor may write it), over a network, where this
  // thread blocks SIGBUS, and for files that are not of the POSIX storage.
  static std::unique_ptr<CachedView> of_whole(const File& file);
  ~CachedView();
  CachedView(const CachedView&) = delete;
  CachedView& operator=(const CachedView&) = delete;

  Bytes bytes() const { return bytes_; }
  bool cut() const;  // a call: to be asked when all is done
  // Fills `into` from bytes()[offset] on, if all of that is in memory, so that nothing is waited for. False
  // where it is not, where somebody else has put a handler of SIGBUS over ours, and where a signal told that
  // the file was cut: then what `into` holds is undefined. Who does not compare it with a check has to ask
  // cut() too. Two calls.
  bool copy(uint64_t offset, MutableBytes into) const;
  // Undoes the mapping of bytes()[begin, end), where threads can do so side by side; the end of the view does
  // it alone. Whoever looks there again pays for it again.
  void leave(size_t begin, size_t end) const;

 private:
  CachedView(const PosixFile& file, uint64_t end, void* address, size_t mapped, Bytes bytes, size_t slot)
      : file_(file), end_(end), address_(address), mapped_(mapped), bytes_(bytes), slot_(slot) {}

  static std::unique_ptr<CachedView> map(const PosixFile& file, uint64_t offset, uint64_t bytes);

  const PosixFile& file_;
  const uint64_t end_;  // in the file
  void* const address_;
  const size_t mapped_;
  const Bytes bytes_;
  const size_t slot_;  // among those that the handler knows
};

// What is said of a file of which a view was cut.
inline constexpr std::string_view kCutWhileRead =
    "the file was cut short while it was read, or cannot be read in places";

}  // namespace packtrain
