#include "core/sources/sample_source.h"

#include <algorithm>

#include "core/base/little_endian.h"
#include "core/base/medium_faults.h"
#include "core/shards/crc32c.h"

namespace stoker {
namespace {

constexpr size_t kCacheLine = 64;

// As crc32c_copy(). Waiting for the next bytes and copying these take turns.
uint32_t copy_and_prefetch(uint32_t sum, std::span<const uint8_t> from, uint8_t* out,
                           std::span<const uint8_t> next) {
  const size_t piece = crc32c_least_copy();  // so many bytes of the next sample are on their way at a time
  for (size_t at = 0; at < from.size(); at += piece) {
    const size_t ahead = std::min(at + piece, next.size());
    for (size_t line = at; line < ahead; line += kCacheLine) __builtin_prefetch(next.data() + line, 0, 2);
    sum = crc32c_copy(sum, from.subspan(at, std::min(piece, from.size() - at)), out + at);
  }
  return sum;
}

}  // namespace

uint32_t crc_of(std::span<const uint8_t> bytes, const SourceScratch& scratch) {
  return scratch.crc ? *scratch.crc : crc32c(bytes);
}

bool FetchedSample::copy(std::span<const uint8_t> part, uint8_t* out, PixelsGuess& guess,
                         std::span<const uint8_t> next) const {
  const auto before = static_cast<size_t>(part.data() - bytes.data());
  guess = {};
  if (mapped != nullptr && (part.data() != left.data() || part.size() != left.size())) return false;
  // Also without a check: it is the fastest copy to memory that is not in the caches.
  uint32_t sum = crc32c(bytes.first(before));
  if (mapped == nullptr) {
    sum = copy_and_prefetch(sum, part, out, next);
  } else if (const std::span from(mapped, part.size());
             !guarded(from, [&sum, from, out, next] { sum = copy_and_prefetch(sum, from, out, next); })) {
    return false;
  }
  sum = crc32c_extend(sum, bytes.subspan(before + part.size()));
  if (crc && sum != *crc) return false;
  if (before >= sizeof(guess.before)) {
    guess = {before, part.size(), load_le64(part.data() - sizeof(guess.before))};
  }
  return true;
}

void SampleSource::read_fields(uint64_t, std::span<const uint8_t>, const FieldSpec&, RecordFields&) const {
  throw Error(ErrorCode::kBadArgument, "Samples of this source have no fields");
}

SourceSample SampleSource::describe_with_fields(SampleId id, std::span<const uint8_t> bytes,
                                                const FieldSpec& spec, SourceScratch& scratch,
                                                std::string& name, RecordFields& fields) const {
  const SourceSample sample = describe(id, bytes, scratch, name);
  read_fields(id.number, bytes, spec, fields);
  return sample;
}

}  // namespace stoker
