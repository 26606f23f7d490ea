// A source for the tests of caches: it counts how often it is asked, and its bytes tell their number.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/sources/sample_source.h"

namespace stoker::tests {

class CountedSource : public SampleSource {
 public:
  explicit CountedSource(std::vector<uint64_t> sizes) : sizes_(std::move(sizes)) {}

  std::vector<uint8_t> expected(uint64_t number) const {
    std::vector<uint8_t> bytes(sizes_[number] + extra.load());
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(number * 31 + i * 7 + i / 256);
    return bytes;
  }

  uint64_t size() const override { return sizes_.size(); }
  std::span<const uint8_t> fetch(uint64_t number, SourceScratch& scratch) const override {
    ++asked;
    const auto bytes = expected(number);
    const std::span<uint8_t> out(scratch.bytes.take(bytes.size()), bytes.size());
    std::copy(bytes.begin(), bytes.end(), out.begin());
    return out;
  }
  SourceSample describe(SampleId id, std::span<const uint8_t> bytes, SourceScratch&,
                        std::string& name) const override {
    name = "sample " + std::to_string(id.number);
    return {.image = {.bytes = bytes}, .label = static_cast<int64_t>(id.number)};
  }
  void append_boxes(uint64_t number, std::span<const uint8_t>, int64_t label, SourceScratch&,
                    std::vector<LabelledBox>& boxes) const override {
    boxes.resize(boxes.size() + number, {.box = {}, .label = label});
  }
  Where where(uint64_t number) const override {
    return {.path = "counted", .record = static_cast<int64_t>(number), .offset = kUnknown, .source = {}};
  }

  const std::vector<uint64_t>& sizes() const { return sizes_; }

  mutable std::atomic<int> asked{0};
  std::atomic<size_t> extra{0};  // bytes by which every sample has grown

 private:
  std::vector<uint64_t> sizes_;
};

inline std::vector<uint8_t> fetched(const SampleSource& source, uint64_t number) {
  SourceScratch scratch;
  const auto bytes = source.fetch(number, scratch);
  return {bytes.begin(), bytes.end()};
}

}  // namespace stoker::tests
