// A cache file of any bytes: what is fetched is what the source has, unless a whole frame with
// good checksums lay where the sample belongs; and what was a miss is a hit the next time.
#include "core/sources/node_cache.h"

#include <algorithm>

#include "core/shards/crc32c.h"
#include "core/shards/tfrecord.h"
#include "fuzz/input.h"
#include "fuzz/invariant.h"
#include "fuzz/memory_file.h"

namespace {

using stoker::fuzz::MemoryFile;
using stoker::fuzz::require;

class Counting : public stoker::SampleSource {
 public:
  explicit Counting(std::vector<uint64_t> sizes) : sizes_(std::move(sizes)) {}

  std::vector<uint8_t> expected(uint64_t number) const {
    return std::vector<uint8_t>(sizes_[number], static_cast<uint8_t>(number + 1));
  }
  uint64_t size() const override { return sizes_.size(); }
  std::span<const uint8_t> fetch(uint64_t number, stoker::SourceScratch& scratch) const override {
    ++asked;
    const std::vector<uint8_t> bytes = expected(number);
    const std::span<uint8_t> out(scratch.bytes.take(bytes.size()), bytes.size());
    std::ranges::copy(bytes, out.begin());
    return out;
  }
  stoker::SourceSample describe(stoker::SampleId, std::span<const uint8_t>, stoker::SourceScratch&,
                                std::string&) const override {
    return {};
  }
  void append_boxes(uint64_t, std::span<const uint8_t>, int64_t, stoker::SourceScratch&,
                    std::vector<stoker::LabelledBox>&) const override {}
  stoker::Where where(uint64_t) const override { return {}; }

  mutable int asked = 0;

 private:
  std::vector<uint64_t> sizes_;
};

// Where the frame of `number` lies in the file.
std::span<const uint8_t> frame_of(std::span<const uint8_t> file, const std::vector<uint64_t>& sizes,
                                  uint64_t number) {
  uint64_t at = 0;
  for (uint64_t i = 0; i < number; ++i) at += sizes[i] + stoker::kFrameBytes;
  const uint64_t bytes = sizes[number] + stoker::kFrameBytes;
  return at + bytes <= file.size() ? file.subspan(at, bytes) : std::span<const uint8_t>{};
}

bool is_frame(std::span<const uint8_t> frame) {
  if (frame.size() < stoker::kFrameBytes) return false;
  return stoker::fuzz::succeeds([&] { stoker::verify_frame(frame, {}); });
}

// The fuzzer cannot compute checksums: where it asks for one, the frame there gets them.
void repair(std::vector<uint8_t>& file, const std::vector<uint64_t>& sizes, uint64_t number) {
  const auto frame = frame_of(file, sizes, number);
  if (frame.empty()) return;
  const auto payload = frame.subspan(stoker::kFrameHeaderBytes, sizes[number]);
  const std::vector<uint8_t> kept(payload.begin(), payload.end());
  const auto start = static_cast<size_t>(frame.data() - file.data());
  stoker::write_frame(kept, std::span(file).subspan(start, frame.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stoker::fuzz::Input input(data, size);
  std::vector<uint64_t> sizes(1 + input.byte() % 8);
  for (uint64_t& sample_size : sizes) sample_size = input.byte();
  const uint8_t good = input.byte(), small = input.byte(), counted = input.byte();
  std::vector<uint8_t> bytes = input.rest();
  for (uint64_t i = 0; i < sizes.size(); ++i) {
    if ((good >> i & 1) != 0) repair(bytes, sizes, i);
  }
  const MemoryFile file(bytes), counter(std::vector<uint8_t>(counted % 9, counted));
  const uint64_t budget = small % 2 == 0 ? uint64_t{1} << 62 : uint64_t{small} * 64;
  const Counting source(sizes);
  stoker::NodeCacheFile cache(file.another(), counter.another(), budget, sizes);
  stoker::SourceScratch scratch;
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < sizes.size(); ++i) {
      const int asked = source.asked;
      const auto frame = frame_of(bytes, sizes, i);
      cache.contains(i);
      const auto got = cache.fetch(i, source, scratch);
      if (is_frame(frame)) {
        require(std::ranges::equal(got, frame.subspan(stoker::kFrameHeaderBytes, sizes[i])));
        require(source.asked == asked);
      } else {
        require(std::ranges::equal(got, source.expected(i)));
        require(round == 1 || source.asked == asked + 1);
      }
    }
  }
  const auto counts = cache.counts();
  require(counts.hits + counts.misses == 2 * sizes.size());
  require(counts.misses == static_cast<uint64_t>(source.asked));
  require(!cache.contains(sizes.size()));
  return 0;
}
