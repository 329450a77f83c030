// Gil: giving up Python's lock and getting it back. Once the interpreter is ending, a thread that asks for
// the lock is ended by Python (before 3.14) in the middle of C++, which ends the process with an abort; so
// here it stays where it is for the rest of the process instead.
#pragma once

#include "bind.h"

namespace packtrain::bind {

// The interpreter ends, by the thread that calls this, without the lock. Afterwards no other thread asks for
// the lock any more, and none is on the way to it.
void begin_leaving();
bool is_leaving();
// Around asking for the lock. The first does not return if another thread is ending the interpreter.
void begin_return();
void end_return();

class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    begin_return();
    PyEval_RestoreThread(state_);
    end_return();
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

// Within WithoutGil, or in a thread that Python does not know.
class WithGil {
 public:
  WithGil() {
    begin_return();
    state_ = PyGILState_Ensure();
    end_return();
  }
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace packtrain::bind
