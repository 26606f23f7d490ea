// Several sources of samples as one, end to end.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/sources/sample_source.h"

namespace stoker {

// A source and what is added to the labels of its samples; -1, for no label, stays.
struct SourcePart {
  std::shared_ptr<const SampleSource> source;
  int64_t label_offset = 0;
};

class Concatenation : public SampleSource {
 public:
  explicit Concatenation(std::vector<SourcePart> parts);

  uint64_t size() const override { return starts_.back(); }
  std::span<const uint8_t> fetch(uint64_t number, SourceScratch& scratch) const override;
  FetchedSample fetch_unchecked(uint64_t number, SourceScratch& scratch) const override;
  SourceSample describe(SampleId id, std::span<const uint8_t> bytes, SourceScratch& scratch,
                        std::string& name) const override;
  void append_boxes(uint64_t number, std::span<const uint8_t> bytes, int64_t label, SourceScratch& scratch,
                    std::vector<LabelledBox>& boxes) const override;
  void read_fields(uint64_t number, std::span<const uint8_t> bytes, const FieldSpec& spec,
                   RecordFields& fields) const override;
  SourceSample describe_with_fields(SampleId id, std::span<const uint8_t> bytes, const FieldSpec& spec,
                                    SourceScratch& scratch, std::string& name,
                                    RecordFields& fields) const override;
  uint64_t start_reading(uint64_t number) const override;
  RemoteSpan remote_span(uint64_t number) const override;
  void expect(uint64_t number, SourceScratch& scratch) const override;
  Where where(uint64_t number) const override;

 private:
  struct Position {
    const SourcePart& part;
    uint64_t number;  // in the part
  };
  Position find(uint64_t number) const;

  std::vector<SourcePart> parts_;
  std::vector<uint64_t> starts_;  // of each part, and the end of the last
};

}  // namespace stoker
