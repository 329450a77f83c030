#include "pack/fetch.h"

#include <algorithm>
#include <cstring>

#include "base/give_back.h"
#include "base/hash.h"
#include "base/words.h"
#include "io/open_files.h"

namespace packtrain {

Fetcher::Fetcher(Storage& storage, const Plan& plan)
    : storage_(storage), plan_(plan), piece_files_(storage, plan.piece_files, most_open_files() / 2) {}

std::string Fetcher::source_path(const Cell& cell) const {
  switch (cell.origin) {
    case Origin::file: {
      const std::string_view path = plan_.catalog.name(cell.path);
      if (path.starts_with('/')) return std::string(path);
      std::string full = plan_.catalog.roots[cell.source].folder;
      if (!full.ends_with('/')) full += '/';
      return full.append(path);
    }
    case Origin::container:
      return cell.inner_field > 0 ? plan_.piece_files[plan_.pieces[cell.where].file].path : "a container";
    case Origin::stream:
      return plan_.catalog.streams[cell.source].path;
    case Origin::text:
    case Origin::label:
      return "a made field";
  }
  return {};
}

Result<std::unique_ptr<File>> Fetcher::open_file(const Cell& cell) {
  auto file = storage_.open(source_path(cell));
  if (!file.ok()) {
    if (file.status().code() == Code::not_found)
      return Status(Code::corrupt, "has vanished since it was listed");
    return file.status();
  }
  const uint64_t size = (*file)->size();
  if (size != cell.size) {
    return Status(Code::corrupt, (size > cell.size ? "has grown from " : "has shrunk from ") +
                                     count_in_words(cell.size) + " to " + count_in_words(size) +
                                     " bytes since it was listed");
  }
  if ((*file)->info().mtime_ns != cell.mtime_ns())
    return Status(Code::corrupt, "was written to since it was listed");
  return file;
}

// All of a block, decoded into memory of its size, and checked.
Status Fetcher::read_block(const Piece& piece, MutableBytes raw) {
  PACKTRAIN_ASSIGN(file, piece_files_.use(piece.file));
  const Pipeline& pipeline = plan_.pipelines[piece.pipeline];
  const bool of_stored = checks_stored(pipeline);
  bool same = true;
  if (pipeline.empty()) {
    PACKTRAIN_TRY(storage_.read(*file, piece.offset, raw));
  } else {
    std::vector<std::byte> stored(piece.stored);
    if (!stored.empty()) PACKTRAIN_TRY(storage_.read(*file, piece.offset, stored));
    same = !of_stored || matches(piece.check_kind, piece.check, stored);
    if (same) PACKTRAIN_TRY(decode(pipeline, stored, raw));
  }
  if (!of_stored) same = matches(piece.check_kind, piece.check, raw);
  if (same) return {};
  return Status(Code::corrupt, "the bytes at " + std::to_string(piece.offset) +
                                   " do not match the check that the container has for them");
}

Status Fetcher::decode_block(const Piece& piece, std::vector<std::byte>& raw) {
  raw.resize(piece.raw);
  return read_block(piece, raw);
}

Status Fetcher::fetch_piece(uint64_t number, MutableBytes into) {
  const Piece& piece = plan_.pieces[number];
  if (piece.hole) {
    std::fill(into.begin(), into.end(), std::byte{0});
    return {};
  }
  if (block_spool_ && block_spool_->has(number)) return block_spool_->read(number, into);
  if (piece.start == 0 && piece.length == piece.raw) return read_block(piece, into);
  if (plan_.pipelines[piece.pipeline].empty() && piece.check_kind == CheckKind::none) {
    PACKTRAIN_ASSIGN(file, piece_files_.use(piece.file));
    return into.empty() ? Status() : storage_.read(*file, piece.offset + piece.start, into);
  }
  const std::pair block(piece.file, piece.offset);
  auto decoded = decoded_.find(block);
  if (!decoded) {
    auto fresh = std::make_shared<std::vector<std::byte>>();
    PACKTRAIN_TRY(decode_block(piece, *fresh));
    decoded_.keep(block, fresh);
    decoded = std::move(fresh);
  }
  std::copy_n(decoded->begin() + static_cast<ptrdiff_t>(piece.start), into.size(), into.begin());
  return {};
}

Status Fetcher::fetch(const Cell& cell, MutableBytes into) {
  switch (cell.origin) {
    case Origin::file: {
      PACKTRAIN_ASSIGN(file, open_file(cell));
      return into.empty() ? Status() : storage_.read(*file, 0, into);
    }
    case Origin::text:
      std::memcpy(into.data(), plan_.catalog.texts.data() + cell.where, into.size());
      return {};
    case Origin::label: {
      const std::string digits = label_text(static_cast<int64_t>(cell.where));
      std::memcpy(into.data(), digits.data(), into.size());
      return {};
    }
    case Origin::container: {
      size_t done = 0;
      for (uint64_t i = cell.where; i < cell.where + cell.inner_field; ++i) {
        PACKTRAIN_TRY(fetch_piece(i, into.subspan(done, plan_.pieces[i].length)));
        done += plan_.pieces[i].length;
      }
      return {};
    }
    case Origin::stream:
      if (spool_) return spool_->read(cell, 0, into);
      break;
  }
  assert(false && "without a spool a stream is read front to back by the scatter writer");
  return Status(Code::invalid, "a compressed archive has no random access");
}

Status Fetcher::fetch_head(const Cell& cell, MutableBytes into) {
  if (into.size() == cell.size) return fetch(cell, into);
  if (cell.origin == Origin::file) {
    PACKTRAIN_ASSIGN(file, open_file(cell));
    return storage_.read(*file, 0, into);
  }
  if (cell.origin == Origin::text) {
    std::memcpy(into.data(), plan_.catalog.texts.data() + cell.where, into.size());
    return {};
  }
  if (cell.origin == Origin::container && cell.inner_field == 1) {
    const Piece& piece = plan_.pieces[cell.where];
    if (!piece.hole && plan_.pipelines[piece.pipeline].empty()) {
      PACKTRAIN_ASSIGN(file, piece_files_.use(piece.file));
      return storage_.read(*file, piece.offset + piece.start, into);
    }
  }
  std::vector<std::byte> whole(cell.size);
  PACKTRAIN_TRY(fetch(cell, whole));
  std::memcpy(into.data(), whole.data(), into.size());
  return {};
}

Status Fetcher::fetch_pieces(const Cell& cell, size_t piece_bytes, const std::function<Status(Bytes)>& each) {
  std::vector<std::byte> buffer(std::min<uint64_t>(piece_bytes, cell.size));
  const auto plain = [&](const File& file, uint64_t offset, uint64_t bytes) -> Status {
    for (uint64_t at = 0; at < bytes; at += piece_bytes) {
      const MutableBytes part = MutableBytes(buffer).first(std::min<uint64_t>(piece_bytes, bytes - at));
      PACKTRAIN_TRY(storage_.read(file, offset + at, part));
      PACKTRAIN_TRY(each(part));
    }
    return {};
  };
  if (cell.origin == Origin::file) {
    PACKTRAIN_ASSIGN(file, open_file(cell));
    return plain(*file, 0, cell.size);
  }
  if (cell.origin == Origin::container && cell.inner_field == 1) {
    const Piece& piece = plan_.pieces[cell.where];
    if (!piece.hole && plan_.pipelines[piece.pipeline].empty() && piece.check_kind == CheckKind::none) {
      PACKTRAIN_ASSIGN(file, piece_files_.use(piece.file));
      return plain(*file, piece.offset + piece.start, piece.length);
    }
  }
  if (cell.origin == Origin::stream && spool_) {
    for (uint64_t at = 0; at < cell.size; at += piece_bytes) {
      const MutableBytes part = MutableBytes(buffer).first(std::min<uint64_t>(piece_bytes, cell.size - at));
      PACKTRAIN_TRY(spool_->read(cell, at, part));
      PACKTRAIN_TRY(each(part));
    }
    return {};
  }
  // Decoded whole: a bomb takes what it unpacks to, but no more than one at a time does.
  PACKTRAIN_ASSIGN(hold, gate_.hold(cell.size));
  buffer.resize(cell.size);
  PACKTRAIN_TRY(fetch(cell, buffer));
  Status done = each(buffer);
  give_back(buffer);
  return done;
}

}  // namespace packtrain
