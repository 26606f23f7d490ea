#include "core/shards/shard_index.h"

#include <limits>
#include <memory>
#include <span>
#include <string_view>

#include "core/base/errors.h"
#include "core/base/random_access_file.h"

namespace stoker {
namespace {

constexpr uint64_t kLeastLine = 4;  // "0 9\n", were there such a frame
constexpr uint64_t kMostLine = 2 * 18 + 2;
constexpr uint64_t kMostNumber = 1'000'000'000'000'000'000;

[[noreturn]] void fail(const ListedShard& shard, size_t record, const std::string& problem) {
  throw Error(
      ErrorCode::kIndexMismatch,
      shard.index + " does not describe its shard: " + problem + "; write it anew with 'stoker index'",
      {.path = shard.index, .record = static_cast<int64_t>(record), .offset = kUnknown, .source = {}});
}

// A decimal number and the character behind it, at `at`, which moves behind both. False if there is none.
bool take_number(const char*& at, const char* end, char behind, uint64_t& value) {
  const char* const first = at;
  value = 0;
  for (; at != end && *at >= '0' && *at <= '9'; ++at) {
    if (value >= kMostNumber / 10) return false;
    value = value * 10 + static_cast<uint64_t>(*at - '0');
  }
  return at != first && at != end && *at++ == behind;
}

// Calls `visit` with where each record begins.
template <typename Visit>
void walk(const ListedShard& shard, std::string_view text, const Visit& visit) {
  const char *at = text.data(), *const end = at + text.size();
  uint64_t expected = 0;
  for (size_t i = 0; i < shard.records; ++i) {
    uint64_t offset = 0, size = 0;
    if (!take_number(at, end, ' ', offset) || !take_number(at, end, '\n', size)) {
      fail(shard, i, "line " + std::to_string(i + 1) + " is not 'offset size'");
    }
    if (offset != expected || size < kFrameBytes || size > shard.bytes - offset) {
      fail(shard, i,
           "record " + std::to_string(i) + " cannot be " + std::to_string(size) + " bytes at " +
               std::to_string(offset) + " of " + std::to_string(shard.bytes));
    }
    visit(offset);
    expected = offset + size;
  }
  if (at != end)
    fail(shard, shard.records, "it lists more than " + std::to_string(shard.records) + " records");
  if (expected != shard.bytes) {
    fail(shard, shard.records,
         "its " + std::to_string(shard.records) + " records end at byte " + std::to_string(expected) +
             " of " + std::to_string(shard.bytes));
  }
}

}  // namespace

bool may_be_index(uint64_t index_bytes, uint64_t records) {
  return index_bytes / kLeastLine >= records && index_bytes / kMostLine <= records;
}

ShardIndex ShardIndex::read(const ListedShard& shard) {
  const RandomAccessFile file(shard.index);
  if (!may_be_index(file.size(), shard.records)) {
    fail(shard, 0,
         std::to_string(file.size()) + " bytes cannot list " + std::to_string(shard.records) + " records");
  }
  if (file.has_hole(0, file.size())) fail(shard, 0, "most of its bytes were never written");
  const auto buffer = std::make_unique_for_overwrite<uint8_t[]>(file.size());
  const size_t got = file.read_at(0, std::span(buffer.get(), file.size()));
  const std::string_view text(reinterpret_cast<const char*>(buffer.get()), got);
  ShardIndex index;
  index.end_ = shard.bytes;
  if (shard.bytes <= std::numeric_limits<uint32_t>::max()) {
    index.narrow_.reserve(shard.records);
    walk(shard, text, [&](uint64_t offset) { index.narrow_.push_back(static_cast<uint32_t>(offset)); });
  } else {
    index.wide_.reserve(shard.records);
    walk(shard, text, [&](uint64_t offset) { index.wide_.push_back(offset); });
  }
  return index;
}

RecordExtent ShardIndex::operator[](size_t i) const {
  if (!rows_.empty()) return rows_[i];
  const auto start = [&](size_t k) -> uint64_t {
    return k == size() ? end_ : narrow_.empty() ? wide_[k] : narrow_[k];
  };
  return {start(i), start(i + 1) - start(i)};
}

uint64_t ShardIndex::bytes() const {
  return sizeof *this + rows_.capacity() * sizeof(RecordExtent) + narrow_.capacity() * sizeof(uint32_t) +
         wide_.capacity() * sizeof(uint64_t);
}

}  // namespace stoker
