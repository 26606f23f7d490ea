#include "core/sources/concatenation.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"

namespace stoker {
namespace {

int64_t moved(int64_t label, int64_t offset) {
  if (label < 0) return label;
  int64_t sum = 0;
  if (__builtin_add_overflow(label, offset, &sum)) {
    throw Error(ErrorCode::kBadExample, "the label " + std::to_string(label) +
                                            " is too large to be moved by " + std::to_string(offset));
  }
  return sum;
}

}  // namespace

Concatenation::Concatenation(std::vector<SourcePart> parts) : parts_(std::move(parts)), starts_{0} {
  for (const SourcePart& part : parts_) {
    if (!part.source || part.label_offset < 0) {
      throw Error(ErrorCode::kBadArgument, "Dataset " + std::to_string(starts_.size() - 1) +
                                               " of several has no source, or the label offset " +
                                               std::to_string(part.label_offset) + ", which is below 0");
    }
    uint64_t end = 0;
    if (__builtin_add_overflow(starts_.back(), part.source->size(), &end)) {
      throw Error(ErrorCode::kBadArgument, "The datasets claim more samples than can be counted");
    }
    starts_.push_back(end);
  }
}

Concatenation::Position Concatenation::find(uint64_t number) const {
  const auto next = std::ranges::upper_bound(starts_, number);
  if (next == starts_.end()) {
    throw Error(ErrorCode::kBadArgument, "There is no sample " + std::to_string(number) +
                                             "; the datasets have " + std::to_string(size()));
  }
  const auto index = static_cast<size_t>(next - starts_.begin()) - 1;
  return {parts_[index], number - starts_[index]};
}

std::span<const uint8_t> Concatenation::fetch(uint64_t number, SourceScratch& scratch) const {
  const Position position = find(number);
  return position.part.source->fetch(position.number, scratch);
}

FetchedSample Concatenation::fetch_unchecked(uint64_t number, SourceScratch& scratch) const {
  const Position position = find(number);
  return position.part.source->fetch_unchecked(position.number, scratch);
}

SourceSample Concatenation::describe(SampleId id, std::span<const uint8_t> bytes, SourceScratch& scratch,
                                     std::string& name) const {
  const Position position = find(id.number);
  SourceSample sample = position.part.source->describe({position.number, id.object}, bytes, scratch, name);
  sample.label = moved(sample.label, position.part.label_offset);
  return sample;
}

void Concatenation::append_boxes(uint64_t number, std::span<const uint8_t> bytes, int64_t label,
                                 SourceScratch& scratch, std::vector<LabelledBox>& boxes) const {
  const Position position = find(number);
  const int64_t offset = position.part.label_offset;
  const size_t first = boxes.size();
  position.part.source->append_boxes(position.number, bytes, label < offset ? -1 : label - offset, scratch,
                                     boxes);
  for (size_t i = first; i < boxes.size(); ++i) boxes[i].label = moved(boxes[i].label, offset);
}

void Concatenation::read_fields(uint64_t number, std::span<const uint8_t> bytes, const FieldSpec& spec,
                                RecordFields& fields) const {
  const Position position = find(number);
  position.part.source->read_fields(position.number, bytes, spec, fields);
}

SourceSample Concatenation::describe_with_fields(SampleId id, std::span<const uint8_t> bytes,
                                                 const FieldSpec& spec, SourceScratch& scratch,
                                                 std::string& name, RecordFields& fields) const {
  const Position position = find(id.number);
  SourceSample sample = position.part.source->describe_with_fields({position.number, id.object}, bytes, spec,
                                                                   scratch, name, fields);
  sample.label = moved(sample.label, position.part.label_offset);
  return sample;
}

uint64_t Concatenation::start_reading(uint64_t number) const {
  const Position position = find(number);
  return position.part.source->start_reading(position.number);
}

RemoteSpan Concatenation::remote_span(uint64_t number) const {
  const Position position = find(number);
  return position.part.source->remote_span(position.number);
}

void Concatenation::expect(uint64_t number, SourceScratch& scratch) const {
  const Position position = find(number);
  position.part.source->expect(position.number, scratch);
}

Where Concatenation::where(uint64_t number) const {
  const Position position = find(number);
  return position.part.source->where(position.number);
}

}  // namespace stoker
