#include "io/test_storage.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <thread>

#include "base/words.h"

namespace packtrain {

// --- StorageWrapper ---

class StorageWrapper::WrappedFile final : public File {
 public:
  WrappedFile(std::unique_ptr<File> inner, FileInfo info, std::string path)
      : inner_(std::move(inner)), info_(info), path_(std::move(path)) {}
  uint64_t size() const override { return info_.size; }
  const FileInfo& info() const override { return info_; }
  const File& inner() const { return *inner_; }
  const std::string& path() const { return path_; }

 private:
  const std::unique_ptr<File> inner_;
  const FileInfo info_;
  const std::string path_;
};

// Sends a twin of each request to the inner Storage and holds its outcome back until it may be ready.
class StorageWrapper::WrappedReads final : public Reads {
 public:
  WrappedReads(StorageWrapper& wrapper, uint32_t depth)
      : wrapper_(wrapper), depth_(std::max<uint32_t>(depth, 1)), inner_(wrapper.inner_.reads(depth)) {}

  void submit(std::span<Read* const> batch) override {
    for (Read* read : batch) {
      while (in_flight_ - ready_.size() >= depth_) settle();
      ++in_flight_;
      const auto& file = static_cast<const WrappedFile&>(*read->file);
      read->status = wrapper_.before_read(file.path(), read->offset, read->into.size());
      if (!read->status.ok()) {
        ready_.push_back(read);
        continue;
      }
      auto twin = std::make_unique<Twin>();
      twin->original = read;
      twin->ready_at = wrapper_.ready_at(read->into.size());
      twin->request.file = &file.inner();
      twin->request.offset = read->offset;
      twin->request.into = read->into;
      twin->request.tag = reinterpret_cast<uintptr_t>(twin.get());
      Read* request = &twin.release()->request;
      inner_->submit({&request, 1});
    }
  }

  size_t wait(std::span<Read*> finished) override {
    while (ready_.empty() && in_flight_ > 0 && !finished.empty()) settle();
    size_t count = 0;
    while (count < finished.size() && !ready_.empty()) {
      finished[count++] = ready_.front();
      ready_.pop_front();
    }
    in_flight_ -= count;
    return count;
  }

  size_t in_flight() const override { return in_flight_; }

  ~WrappedReads() override {
    while (inner_->in_flight() > 0 || !held_.empty()) settle();
  }

 private:
  struct Twin {
    Read request;
    Read* original;
    Clock::time_point ready_at;
  };

  // Takes what the inner Storage has finished, or waits for the time of what is held back.
  void settle() {
    if (inner_->in_flight() > 0) {
      Read* finished[64];
      const size_t count = inner_->wait(finished);
      for (size_t i = 0; i < count; ++i) held_.emplace_back(reinterpret_cast<Twin*>(finished[i]->tag));
    }
    if (held_.empty()) return;
    std::sort(held_.begin(), held_.end(),
              [](const auto& a, const auto& b) { return a->ready_at < b->ready_at; });
    if (inner_->in_flight() == 0) std::this_thread::sleep_until(held_.front()->ready_at);
    const auto now = Clock::now();
    while (!held_.empty() && held_.front()->ready_at <= now) {
      Read& read = *held_.front()->original;
      read.status = held_.front()->request.status;
      const auto& file = static_cast<const WrappedFile&>(*read.file);
      if (read.status.ok()) read.status = wrapper_.after_read(file.path(), read.offset, read.into);
      ready_.push_back(&read);
      held_.pop_front();
    }
  }

  StorageWrapper& wrapper_;
  const size_t depth_;
  std::deque<std::unique_ptr<Twin>> held_;
  std::deque<Read*> ready_;
  size_t in_flight_ = 0;
  const std::unique_ptr<Reads> inner_;
};

class StorageWrapper::WrappedWriter final : public Writer {
 public:
  WrappedWriter(StorageWrapper& wrapper, std::unique_ptr<Writer> inner, std::string path)
      : wrapper_(wrapper), inner_(std::move(inner)), path_(std::move(path)) {}
  Status write_at(uint64_t offset, Bytes data) override {
    PACKTRAIN_TRY(wrapper_.before(Call::write, path_, data.size()));
    return inner_->write_at(offset, data);
  }
  Status resize(uint64_t size) override { return inner_->resize(size); }
  Status commit() override {
    PACKTRAIN_TRY(wrapper_.before(Call::commit, path_, 0));
    return inner_->commit();
  }
  void discard() override { inner_->discard(); }

 private:
  StorageWrapper& wrapper_;
  const std::unique_ptr<Writer> inner_;
  const std::string path_;
};

Result<std::unique_ptr<File>> StorageWrapper::open(std::string_view path) {
  PACKTRAIN_TRY(before(Call::open, path, 0));
  PACKTRAIN_ASSIGN(file, inner_.open(path));
  const FileInfo info = seen(file->info(), path);
  return std::unique_ptr<File>(new WrappedFile(std::move(file), info, std::string(path)));
}

std::unique_ptr<Reads> StorageWrapper::reads(uint32_t depth) {
  return std::make_unique<WrappedReads>(*this, depth);
}

Status StorageWrapper::read(const File& file, uint64_t offset, MutableBytes into) {
  const auto& wrapped = static_cast<const WrappedFile&>(file);
  PACKTRAIN_TRY(before_read(wrapped.path(), offset, into.size()));
  const Clock::time_point ready = ready_at(into.size());
  PACKTRAIN_TRY(inner_.read(wrapped.inner(), offset, into));
  std::this_thread::sleep_until(ready);
  return after_read(wrapped.path(), offset, into);
}

Result<FileInfo> StorageWrapper::look_at(const File& file) {
  const auto& wrapped = static_cast<const WrappedFile&>(file);
  PACKTRAIN_TRY(before(Call::stat, wrapped.path(), 0));
  PACKTRAIN_ASSIGN(info, inner_.look_at(wrapped.inner()));
  return seen(info, wrapped.path());
}

Result<FileInfo> StorageWrapper::stat(std::string_view path, bool follow) {
  PACKTRAIN_TRY(before(Call::stat, path, 0));
  PACKTRAIN_ASSIGN(info, inner_.stat(path, follow));
  return seen(info, path);
}

Status StorageWrapper::list(std::string_view folder, const std::function<bool(FolderEntry&&)>& each) {
  PACKTRAIN_TRY(before(Call::list, folder, 0));
  return inner_.list(folder, each);
}

Result<std::string> StorageWrapper::read_link(std::string_view path) {
  PACKTRAIN_TRY(before(Call::read_link, path, 0));
  return inner_.read_link(path);
}

Result<std::unique_ptr<Writer>> StorageWrapper::create(std::string_view path, uint64_t size,
                                                       const WriteOptions& options) {
  PACKTRAIN_TRY(before(Call::create, path, 0));
  PACKTRAIN_ASSIGN(writer, inner_.create(path, size, options));
  return std::unique_ptr<Writer>(new WrappedWriter(*this, std::move(writer), std::string(path)));
}

Status StorageWrapper::make_folder(std::string_view path) {
  PACKTRAIN_TRY(before(Call::make_folder, path, 0));
  return inner_.make_folder(path);
}

Status StorageWrapper::rename(std::string_view from, std::string_view to) {
  PACKTRAIN_TRY(before(Call::rename, to, 0));
  return inner_.rename(from, to);
}

Status StorageWrapper::exchange(std::string_view one, std::string_view other) {
  PACKTRAIN_TRY(before(Call::rename, other, 0));
  return inner_.exchange(one, other);
}

Status StorageWrapper::link(std::string_view from, std::string_view to) {
  PACKTRAIN_TRY(before(Call::link, to, 0));
  return inner_.link(from, to);
}

Status StorageWrapper::remove(std::string_view path) {
  PACKTRAIN_TRY(before(Call::remove, path, 0));
  return inner_.remove(path);
}

Status StorageWrapper::sync_folder(std::string_view path) {
  PACKTRAIN_TRY(before(Call::sync_folder, path, 0));
  return inner_.sync_folder(path);
}

// --- CountingStorage ---

namespace {

bool is_metadata(Call call) { return call != Call::read && call != Call::write && call != Call::commit; }

}  // namespace

uint64_t CountingStorage::metadata_calls() const {
  uint64_t sum = 0;
  for (size_t call = 0; call < kCallKinds; ++call)
    if (is_metadata(static_cast<Call>(call))) sum += calls_[call].load();
  return sum;
}

void CountingStorage::reset() {
  for (auto& count : calls_) count = 0;
  bytes_read_ = 0;
  bytes_written_ = 0;
}

Status CountingStorage::before(Call call, std::string_view, uint64_t bytes) {
  ++calls_[static_cast<size_t>(call)];
  if (call == Call::read) bytes_read_ += bytes;
  if (call == Call::write) bytes_written_ += bytes;
  return {};
}

// --- ThrottledStorage ---

Status ThrottledStorage::before(Call call, std::string_view, uint64_t bytes) {
  if (is_metadata(call)) std::this_thread::sleep_for(throttle_.per_metadata_call);
  if (call == Call::write) std::this_thread::sleep_until(take_bandwidth(bytes));
  return {};
}

StorageWrapper::Clock::time_point ThrottledStorage::ready_at(uint64_t bytes) {
  return std::max(Clock::now() + throttle_.per_read, take_bandwidth(bytes));
}

// The time at which the line, which carries one piece after the other, has carried these bytes.
StorageWrapper::Clock::time_point ThrottledStorage::take_bandwidth(uint64_t bytes) {
  if (throttle_.bytes_per_second == 0) return Clock::time_point::min();
  const std::chrono::duration<double> takes(static_cast<double>(bytes) /
                                            static_cast<double>(throttle_.bytes_per_second));
  Lock lock(mutex_);
  line_free_ = std::max(line_free_, Clock::now()) + std::chrono::duration_cast<Clock::duration>(takes);
  return line_free_;
}

// --- FaultyStorage ---

FaultyStorage::FaultyStorage(Storage& inner, Faults faults)
    : StorageWrapper(inner), faults_(std::move(faults)) {
  const std::pair<Call, uint64_t> plan[] = {
      {Call::open, faults_.fail_open},
      {Call::read, faults_.fail_read},
      {Call::stat, faults_.fail_stat},
      {Call::list, faults_.fail_list},
      {Call::read_link, faults_.fail_read_link},
      {Call::create, faults_.fail_create},
      {Call::write, faults_.fail_write},
      {Call::commit, faults_.fail_commit},
      {Call::make_folder, faults_.fail_make_folder},
      {Call::rename, faults_.fail_rename},
      {Call::link, faults_.fail_link},
      {Call::remove, faults_.fail_remove},
      {Call::sync_folder, faults_.fail_sync_folder},
  };
  static_assert(std::size(plan) == kCallKinds);
  for (const auto& [call, nth] : plan) fail_at_[static_cast<size_t>(call)] = nth;
}

Status FaultyStorage::exchange(std::string_view one, std::string_view other) {
  if (faults_.no_exchange) return Status(Code::unsupported, "names cannot be exchanged here");
  return StorageWrapper::exchange(one, other);
}

Status FaultyStorage::before(Call call, std::string_view path, uint64_t) {
  const uint64_t fail_at = fail_at_[static_cast<size_t>(call)];
  if (fail_at == 0 || !concerns(path)) return {};
  const uint64_t now = ++calls_[static_cast<size_t>(call)];
  if (now < fail_at || (now > fail_at && !faults_.from_then_on)) return {};
  ++failures_;
  return Status(faults_.code, "a fault was injected here").at(printable(path));
}

Status FaultyStorage::before_read(std::string_view path, uint64_t offset, uint64_t bytes) {
  PACKTRAIN_TRY(before(Call::read, path, bytes));
  if (faults_.ends_at && concerns(path) && bytes > 0 && offset + bytes > *faults_.ends_at) {
    ++failures_;
    return Status(Code::corrupt, "file ends at " + std::to_string(*faults_.ends_at))
        .at(printable(path) + " @ " + std::to_string(offset));
  }
  return {};
}

Status FaultyStorage::after_read(std::string_view path, uint64_t, MutableBytes into) {
  if (faults_.flip_read == 0 || !concerns(path) || into.empty()) return {};
  const uint64_t now = ++finished_reads_;
  if (now < faults_.flip_read || (now > faults_.flip_read && !faults_.from_then_on)) return {};
  const uint64_t bit = faults_.flip_bit % (into.size() * 8);
  into[bit / 8] ^= std::byte{1} << (bit % 8);
  ++failures_;
  return {};
}

FileInfo FaultyStorage::seen(FileInfo info, std::string_view path) {
  if (faults_.ends_at && info.kind == FileKind::file && concerns(path))
    info.size = std::min(info.size, *faults_.ends_at);
  return info;
}

// --- helpers ---

TemporaryFolder::TemporaryFolder() {
  const char* base = std::getenv("TMPDIR");
  path_ = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/packtrain-test-XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr) {
    std::perror(("cannot make " + path_).c_str());
    std::abort();
  }
}

TemporaryFolder::~TemporaryFolder() {
  const Status status = remove_tree(posix_storage(), path_);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.text().c_str());
}

void put(Storage& storage, std::string_view path, std::string_view text) {
  const size_t slash = path.rfind('/');
  Status status;
  if (slash != std::string_view::npos && slash > 0) status = storage.make_folder(path.substr(0, slash));
  WriteOptions options;
  options.replace = true;
  options.durable = false;
  if (status.ok()) status = write_whole(storage, path, as_bytes(text), options);
  if (status.ok()) return;
  std::fprintf(stderr, "cannot put a file for the test: %s\n", status.text().c_str());
  std::abort();
}

std::string get(Storage& storage, std::string_view path) {
  Result<std::string> text = read_whole(storage, path);
  return text.ok() ? *text : "<" + text.status().text();
}

std::vector<std::string> visible(Storage& storage, std::string_view folder, bool parts) {
  std::vector<std::string> files, folders{""};
  while (!folders.empty()) {
    const std::string here = folders.back();
    folders.pop_back();
    const Status status = storage.list(std::string(folder) + "/" + here, [&](FolderEntry&& entry) {
      std::string name = here.empty() ? entry.name : here + "/" + entry.name;
      if (entry.kind == FileKind::folder)
        folders.push_back(std::move(name));
      else if (parts || entry.name.find(".tmp-") == std::string::npos)
        files.push_back(std::move(name));
      return true;
    });
    if (!status.ok()) files.push_back("<" + status.text());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace packtrain
