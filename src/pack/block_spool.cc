#include "pack/block_spool.h"

#include <algorithm>
#include <atomic>
#include <tuple>
#include <utility>

#include "base/threads.h"
#include "pack/fetch.h"
#include "pack/progress_meter.h"

namespace packtrain {
namespace {

std::pair<uint32_t, uint64_t> block_of(const Piece& piece) { return {piece.file, piece.offset}; }

bool is_shared_block(const Plan& plan, const Piece& piece) {
  return !piece.hole && !plan.pipelines[piece.pipeline].empty() && piece.stored > 0 &&
         piece.length < piece.raw;
}

}  // namespace

BlocksToSpool blocks_to_spool(const Plan& plan, const std::vector<uint32_t>& shards,
                              const WrittenFields& fields, uint64_t for_nothing) {
  const Catalog& catalog = plan.catalog;
  BlocksToSpool wanted;
  if (plan.pipelines.size() < 2) return wanted;
  // What decoding in the order of the shards would cost, if the last block of each field were kept, and what
  // it costs to decode each block once.
  std::vector<std::pair<uint32_t, uint64_t>> last(catalog.fields.size(), {UINT32_MAX, 0});
  uint64_t decoded = 0, once = 0;
  for (const uint32_t number : shards) {
    const ShardPlan& shard = plan.shards[number];
    for (uint64_t i = shard.first; i < shard.first + shard.count; ++i) {
      const uint64_t sample = plan.order[i];
      for (uint64_t c = catalog.samples[sample].first_cell; c < catalog.end_cell(sample); ++c) {
        const Cell& cell = catalog.cells[c];
        if (cell.origin != Origin::container || !fields.has(catalog.fields[cell.field])) continue;
        for (uint64_t p = cell.where; p < cell.where + cell.inner_field; ++p) {
          const Piece& piece = plan.pieces[p];
          if (!is_shared_block(plan, piece)) continue;
          if (last[cell.field] != block_of(piece)) decoded += piece.raw;
          last[cell.field] = block_of(piece);
          wanted.pieces.push_back(p);
        }
      }
    }
  }
  const auto before = [&](uint64_t a, uint64_t b) {
    const Piece &left = plan.pieces[a], &right = plan.pieces[b];
    return std::tuple(block_of(left), left.start, a) < std::tuple(block_of(right), right.start, b);
  };
  std::sort(wanted.pieces.begin(), wanted.pieces.end(), before);
  for (size_t i = 0; i < wanted.pieces.size(); ++i) {
    const Piece& piece = plan.pieces[wanted.pieces[i]];
    wanted.bytes += piece.length;
    if (i == 0 || block_of(plan.pieces[wanted.pieces[i - 1]]) != block_of(piece)) once += piece.raw;
  }
  if (decoded <= 2 * once || decoded - 2 * once <= for_nothing) return {};
  return wanted;
}

// Decodes blocks on several threads, each into its own stretch of the part. Thread-safe.
class BlockSpoolFiller {
 public:
  BlockSpoolFiller(BlockSpool& spool, const Plan& plan, const std::vector<uint64_t>& pieces,
                   ProgressMeter& meter)
      : spool_(spool), plan_(plan), pieces_(pieces), fetcher_(spool.storage_, plan), meter_(meter) {
    uint64_t at = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Piece& piece = plan.pieces[pieces[i]];
      if (i == 0 || block_of(plan.pieces[pieces[i - 1]]) != block_of(piece)) first_.push_back({i, at});
      at += piece.length;
    }
    first_.push_back({pieces.size(), at});
  }

  Status run(uint32_t threads) {
    run_on("pack-decode", threads, [this](uint32_t) {
      std::vector<std::byte> raw, together;
      for (size_t block = next_++; block + 1 < first_.size() && !stopped_; block = next_++) {
        const Status status = take(block, raw, together);
        if (status.ok()) continue;
        Lock lock(mutex_);
        if (failure_.ok()) failure_ = status;
        stopped_ = true;
      }
    });
    Lock lock(mutex_);
    return failure_;
  }

 private:
  struct First {
    size_t piece;  // into pieces_
    uint64_t at;   // in the part
  };

  Status take(size_t block, std::vector<std::byte>& raw, std::vector<std::byte>& together) {
    const First begin = first_[block], end = first_[block + 1];
    Status decoded = fetcher_.decode_block(plan_.pieces[pieces_[begin.piece]], raw);
    if (decoded.code() == Code::io || decoded.code() == Code::limit || decoded.code() == Code::no_room)
      return decoded;
    if (!decoded.ok()) return {};
    together.clear();
    uint64_t at = begin.at;
    for (size_t i = begin.piece; i < end.piece; ++i) {
      const Piece& piece = plan_.pieces[pieces_[i]];
      const auto from = raw.begin() + static_cast<ptrdiff_t>(piece.start);
      together.insert(together.end(), from, from + static_cast<ptrdiff_t>(piece.length));
      spool_.at_[pieces_[i]] = at;
      at += piece.length;
    }
    PACKTRAIN_TRY(spool_.writer_->write_at(begin.at, together));
    if (!meter_.add(end.piece - begin.piece, together.size()))
      return Status(Code::stopped, "stopped; run the same command again to go on");
    return {};
  }

  BlockSpool& spool_;
  const Plan& plan_;
  const std::vector<uint64_t>& pieces_;
  Fetcher fetcher_;
  ProgressMeter& meter_;
  std::vector<First> first_;  // of each block, and where the last one ends
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> stopped_ = false;
  Mutex mutex_;
  Status failure_ GUARDED_BY(mutex_);
};

Result<std::unique_ptr<BlockSpool>> BlockSpool::make(Storage& storage, const Plan& plan,
                                                     const BlocksToSpool& wanted, const std::string& folder,
                                                     const std::string& token, uint32_t threads,
                                                     const Progress& progress) {
  std::unique_ptr<BlockSpool> spool(new BlockSpool(storage));
  spool->at_.assign(plan.pieces.size(), kNowhere);
  if (wanted.pieces.empty()) return spool;
  const std::string path = folder + "/blocks";
  WriteOptions options;
  options.token = token;
  options.durable = false;
  PACKTRAIN_ASSIGN(writer, storage.create(path, wanted.bytes, options));
  spool->writer_ = std::move(writer);
  ProgressMeter meter(progress, "decompress", "values", wanted.pieces.size(), wanted.bytes);
  PACKTRAIN_TRY(BlockSpoolFiller(*spool, plan, wanted.pieces, meter).run(threads));
  PACKTRAIN_ASSIGN(file, storage.open(path + ".tmp-" + token));
  spool->file_ = std::move(file);
  return spool;
}

BlockSpool::~BlockSpool() {
  file_.reset();
  if (writer_) writer_->discard();
}

Status BlockSpool::read(uint64_t piece, MutableBytes into) const {
  return into.empty() ? Status() : storage_.read(*file_, at_[piece], into);
}

}  // namespace packtrain
