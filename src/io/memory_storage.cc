#include <algorithm>
#include <cstring>
#include <deque>
#include <set>

#include "base/words.h"
#include "io/test_storage.h"

namespace packtrain {
namespace {

Status missing(std::string_view path) { return Status(Code::not_found, "is not there").at(printable(path)); }
Status taken(std::string_view path) { return Status(Code::invalid, "exists already").at(printable(path)); }

std::string parent_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? "" : path.substr(0, slash));
}

}  // namespace

// What a name stands for. The bytes of a committed file never change; those of a part do, under the lock.
struct MemoryStorage::Node {
  FileInfo info;
  std::vector<std::byte> bytes;
};

// Keeps its bytes alive when the name is removed, as an open descriptor does.
class MemoryStorage::MemoryFile final : public File {
 public:
  MemoryFile(std::shared_ptr<Node> node, FileInfo info, std::string path)
      : node_(std::move(node)), info_(info), path_(std::move(path)) {}
  uint64_t size() const override { return info_.size; }
  const FileInfo& info() const override { return info_; }
  const Node& node() const { return *node_; }
  const std::string& path() const { return path_; }

 private:
  const std::shared_ptr<Node> node_;
  const FileInfo info_;
  const std::string path_;
};

// Every read is finished as soon as it is submitted.
class MemoryStorage::MemoryReads final : public Reads {
 public:
  explicit MemoryReads(MemoryStorage& storage) : storage_(storage) {}
  void submit(std::span<Read* const> batch) override {
    for (Read* read : batch) {
      read->status = storage_.read(*read->file, read->offset, read->into);
      finished_.push_back(read);
    }
  }
  size_t wait(std::span<Read*> finished) override {
    const size_t count = std::min(finished.size(), finished_.size());
    std::copy_n(finished_.begin(), count, finished.begin());
    finished_.erase(finished_.begin(), finished_.begin() + static_cast<ptrdiff_t>(count));
    return count;
  }
  size_t in_flight() const override { return finished_.size(); }

 private:
  MemoryStorage& storage_;
  std::deque<Read*> finished_;
};

class MemoryStorage::MemoryWriter final : public Writer {
 public:
  MemoryWriter(MemoryStorage& storage, std::shared_ptr<Node> node, std::string path, std::string part,
               bool replace)
      : storage_(storage),
        node_(std::move(node)),
        path_(std::move(path)),
        part_(std::move(part)),
        replace_(replace) {}

  Status write_at(uint64_t offset, Bytes data) override {
    Lock lock(storage_.mutex_);
    if (done_) return Status(Code::invalid, "a write after commit or discard").at(printable(path_));
    if (offset > node_->bytes.size() || data.size() > node_->bytes.size() - offset)
      return Status(Code::invalid, "a write leaves the size that the file was created with")
          .at(printable(path_));
    std::copy(data.begin(), data.end(), node_->bytes.begin() + static_cast<ptrdiff_t>(offset));
    return {};
  }

  Status resize(uint64_t size) override {
    Lock lock(storage_.mutex_);
    if (done_) return Status(Code::invalid, "a change of size after commit or discard").at(printable(path_));
    if (size > node_->bytes.size()) PACKTRAIN_TRY(storage_.needs_room(size - node_->bytes.size(), part_));
    node_->bytes.resize(size);
    return {};
  }

  Status commit() override {
    Lock lock(storage_.mutex_);
    if (done_) return Status(Code::invalid, "a second commit, or one after discard").at(printable(path_));
    PACKTRAIN_TRY(storage_.move_name(part_, path_, replace_));
    node_->info.mtime_ns = ++storage_.tick_;
    done_ = true;
    return {};
  }

  void discard() override {
    Lock lock(storage_.mutex_);
    if (!done_) storage_.tree_.erase(part_);
    done_ = true;
  }

 private:
  MemoryStorage& storage_;
  const std::shared_ptr<Node> node_;
  const std::string path_, part_;
  const bool replace_;
  bool done_ = false;
};

MemoryStorage::MemoryStorage(uint64_t capacity) : capacity_(capacity) {
  Lock lock(mutex_);
  tree_[""] = new_node(FileKind::folder);
}

MemoryStorage::~MemoryStorage() = default;

std::string MemoryStorage::normal(std::string_view path) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
    at = end + 1;
  }
  std::string joined;
  for (std::string_view part : parts) joined.append(joined.empty() ? "" : "/").append(part);
  return joined;
}

std::shared_ptr<MemoryStorage::Node> MemoryStorage::find(std::string_view normal_path) {
  const auto found = tree_.find(normal_path);
  return found == tree_.end() ? nullptr : found->second;
}

Status MemoryStorage::needs_parent(std::string_view normal_path) {
  const std::shared_ptr<Node> parent = find(parent_of(normal_path));
  if (parent == nullptr || parent->info.kind != FileKind::folder) return missing(parent_of(normal_path));
  return {};
}

bool MemoryStorage::has_children(std::string_view normal_path) {
  const std::string prefix = normal_path.empty() ? "" : std::string(normal_path) + "/";
  const auto next = prefix.empty() ? std::next(tree_.begin()) : tree_.lower_bound(prefix);
  return next != tree_.end() && next->first.compare(0, prefix.size(), prefix) == 0;
}

std::shared_ptr<MemoryStorage::Node> MemoryStorage::new_node(FileKind kind) {
  auto node = std::make_shared<Node>();
  node->info.kind = kind;
  node->info.mtime_ns = ++tick_;
  node->info.device = 1;
  node->info.inode = ++inodes_;
  node->info.mode = kind == FileKind::folder ? 0755 : 0644;
  return node;
}

Status MemoryStorage::needs_room(uint64_t more, std::string_view path) {
  // Counting is linear in the number of names: only where there is a limit to hold to.
  if (capacity_ == std::numeric_limits<uint64_t>::max()) return {};
  const uint64_t held = bytes_held();
  if (held <= capacity_ && more <= capacity_ - held) return {};
  return Status(Code::no_room, "needs " + bytes_in_words(more)).at(printable(path));
}

uint64_t MemoryStorage::bytes_held() {
  std::set<const Node*> counted;  // a file with two names takes its bytes once
  uint64_t sum = 0;
  for (const auto& [name, node] : tree_)
    if (counted.insert(node.get()).second) sum += node->bytes.size();
  return sum;
}

Status MemoryStorage::move_name(const std::string& from, const std::string& to, bool replace) {
  const std::shared_ptr<Node> node = find(from);
  if (node == nullptr) return missing(from);
  PACKTRAIN_TRY(needs_parent(to));
  if (const std::shared_ptr<Node> old = find(to); old != nullptr && from != to) {
    const bool folder = node->info.kind == FileKind::folder;
    if (!replace || folder != (old->info.kind == FileKind::folder) || (folder && has_children(to)))
      return taken(to);
  }
  if (to.compare(0, from.size() + 1, from + "/") == 0)
    return Status(Code::invalid, "a folder cannot move into itself").at(printable(to));
  Tree moved;
  for (auto at = tree_.lower_bound(from); at != tree_.end();) {
    const bool inside = at->first == from || at->first.compare(0, from.size() + 1, from + "/") == 0;
    if (!inside && at->first.compare(0, from.size(), from) != 0) break;
    if (inside) {
      moved[to + at->first.substr(from.size())] = at->second;
      at = tree_.erase(at);
    } else {
      ++at;
    }
  }
  for (auto& [name, value] : moved) tree_[name] = value;
  return {};
}

Result<std::unique_ptr<File>> MemoryStorage::open(std::string_view path) {
  Lock lock(mutex_);
  std::shared_ptr<Node> node = find(normal(path));
  if (node == nullptr) return missing(path);
  if (node->info.kind == FileKind::folder)
    return Status(Code::invalid, "is a folder, not a file").at(printable(path));
  FileInfo info = node->info;
  info.size = node->bytes.size();
  return std::unique_ptr<File>(new MemoryFile(std::move(node), info, std::string(path)));
}

std::unique_ptr<Reads> MemoryStorage::reads(uint32_t) { return std::make_unique<MemoryReads>(*this); }

Status MemoryStorage::read(const File& file, uint64_t offset, MutableBytes into) {
  const auto& memory = static_cast<const MemoryFile&>(file);
  Lock lock(mutex_);
  const std::vector<std::byte>& bytes = memory.node().bytes;
  if (into.empty()) return {};
  if (offset > bytes.size() || into.size() > bytes.size() - offset)
    return Status(Code::corrupt, "file ends at " + std::to_string(bytes.size()))
        .at(printable(memory.path()) + " @ " + std::to_string(offset));
  std::memcpy(into.data(), bytes.data() + offset, into.size());
  return {};
}

Result<FileInfo> MemoryStorage::look_at(const File& file) {
  const Node& node = static_cast<const MemoryFile&>(file).node();
  Lock lock(mutex_);
  FileInfo info = node.info;
  info.size = node.bytes.size();
  return info;
}

Result<FileInfo> MemoryStorage::stat(std::string_view path, bool) {
  Lock lock(mutex_);
  const std::shared_ptr<Node> node = find(normal(path));
  if (node == nullptr) return missing(path);
  FileInfo info = node->info;
  info.size = node->bytes.size();
  return info;
}

Status MemoryStorage::list(std::string_view folder, const std::function<bool(FolderEntry&&)>& each) {
  std::vector<FolderEntry> entries;  // the lock is not held over a callback
  {
    Lock lock(mutex_);
    const std::string name = normal(folder);
    const std::shared_ptr<Node> node = find(name);
    if (node == nullptr || node->info.kind != FileKind::folder) return missing(folder);
    const std::string prefix = name.empty() ? "" : name + "/";
    for (auto at = tree_.lower_bound(prefix); at != tree_.end(); ++at) {
      if (at->first.compare(0, prefix.size(), prefix) != 0) break;
      std::string rest = at->first.substr(prefix.size());
      if (rest.empty() || rest.find('/') != std::string::npos) continue;
      entries.push_back({std::move(rest), at->second->info.kind});
    }
  }
  for (FolderEntry& entry : entries)
    if (!each(std::move(entry))) break;
  return {};
}

Result<std::string> MemoryStorage::read_link(std::string_view path) {
  Lock lock(mutex_);
  if (find(normal(path)) == nullptr) return missing(path);
  return Status(Code::invalid, "is no symbolic link").at(printable(path));
}

Result<std::unique_ptr<Writer>> MemoryStorage::create(std::string_view path, uint64_t size,
                                                      const WriteOptions& options) {
  Lock lock(mutex_);
  const std::string target = normal(path), part = target + ".tmp-" + options.token;
  PACKTRAIN_TRY(needs_parent(target));
  std::shared_ptr<Node> node = options.resume ? find(part) : nullptr;
  if (node == nullptr) {
    tree_.erase(part);
    node = new_node(FileKind::file);
  }
  const uint64_t before = find(part) == node ? node->bytes.size() : 0;
  if (size > before) PACKTRAIN_TRY(needs_room(size - before, part));
  node->bytes.resize(size);
  tree_[part] = node;
  return std::unique_ptr<Writer>(new MemoryWriter(*this, node, target, part, options.replace));
}

Status MemoryStorage::make_folder(std::string_view path) {
  Lock lock(mutex_);
  const std::string name = normal(path);
  for (size_t end = 0; end < name.size();) {
    end = std::min(name.find('/', end + 1), name.size());
    const std::string folder = name.substr(0, end);
    const std::shared_ptr<Node> node = find(folder);
    if (node == nullptr)
      tree_[folder] = new_node(FileKind::folder);
    else if (node->info.kind != FileKind::folder)
      return taken(folder);
  }
  return {};
}

Status MemoryStorage::rename(std::string_view from, std::string_view to) {
  Lock lock(mutex_);
  return move_name(normal(from), normal(to), /*replace=*/true);
}

Status MemoryStorage::link(std::string_view from, std::string_view to) {
  Lock lock(mutex_);
  const std::string target = normal(to);
  const std::shared_ptr<Node> node = find(normal(from));
  if (node == nullptr) return missing(from);
  if (node->info.kind == FileKind::folder)
    return Status(Code::invalid, "a folder cannot have a second name").at(printable(from));
  PACKTRAIN_TRY(needs_parent(target));
  if (find(target) != nullptr) return taken(to);
  tree_[target] = node;
  return {};
}

Status MemoryStorage::remove(std::string_view path) {
  Lock lock(mutex_);
  const std::string name = normal(path);
  if (find(name) == nullptr) return missing(path);
  if (name.empty() || has_children(name))
    return Status(Code::invalid, "is a folder that is not empty").at(printable(path));
  tree_.erase(name);
  return {};
}

Status MemoryStorage::sync_folder(std::string_view path) {
  Lock lock(mutex_);
  const std::shared_ptr<Node> node = find(normal(path));
  return node == nullptr || node->info.kind != FileKind::folder ? missing(path) : Status();
}

}  // namespace packtrain
