#include "packtrain/status.h"

#include <cerrno>
#include <cstring>

namespace packtrain {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::ok:
      return "ok";
    case Code::not_found:
      return "not_found";
    case Code::invalid:
      return "invalid";
    case Code::corrupt:
      return "corrupt";
    case Code::no_room:
      return "no_room";
    case Code::io:
    case Code::limit:  // to users, a failure of the system like others
      return "io";
    case Code::unsupported:
      return "unsupported";
    case Code::stopped:
      return "stopped";
  }
  return "unknown";
}

Status::Status(Code code, std::string message)
    : rep_(std::make_shared<const Rep>(Rep{code, std::move(message), {}})) {
  assert(code != Code::ok);
}

namespace {
const std::string kNothing;
}

const std::string& Status::message() const { return rep_ ? rep_->message : kNothing; }
const std::string& Status::where() const { return rep_ ? rep_->where : kNothing; }

std::string Status::text() const {
  if (!rep_) return "ok";
  return rep_->where.empty() ? rep_->message : rep_->where + ": " + rep_->message;
}

Status Status::at(std::string_view where) const {
  if (!rep_) return {};
  Status copy;
  std::string places(where);
  if (!rep_->where.empty()) places.append(": ").append(rep_->where);
  copy.rep_ = std::make_shared<const Rep>(Rep{rep_->code, rep_->message, std::move(places)});
  return copy;
}

Status status_from_errno(int error, std::string_view doing) {
  Code code = Code::io;
  std::string advice;
  switch (error) {
    case ENOSPC:
      code = Code::no_room;
      advice = " (no bytes or no inodes left there; free some or choose another target)";
      break;
    case EDQUOT:
      code = Code::no_room;
      advice = " (your quota is used up; free some or choose another target)";
      break;
    case ENOMEM:
      code = Code::no_room;
      break;
    case EFBIG:
      code = Code::no_room;
      advice = " (larger than the filesystem or ulimit -f allows; raise the limit or make smaller shards)";
      break;
    case ENOENT:
    case ENOTDIR:
      code = Code::not_found;
      break;
    case EMFILE:
      code = Code::limit;
      advice = " (as many as this process may ever open, see ulimit -Hn; ask for more, or make fewer shards)";
      break;
    case ENFILE:
      code = Code::limit;
      advice = " (on the whole machine; try again when it has less to do)";
      break;
    default:
      break;
  }
  char buffer[128];
  std::string message(doing);
  message.append(": ").append(strerror_r(error, buffer, sizeof buffer)).append(advice);
  return Status(code, std::move(message));
}

}  // namespace packtrain
