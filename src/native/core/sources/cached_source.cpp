#include "core/sources/cached_source.h"

#include <utility>

namespace stoker {

CachedSource::CachedSource(std::shared_ptr<const SampleSource> inner, std::shared_ptr<SampleCache> cache)
    : inner_(std::move(inner)), cache_(std::move(cache)) {}

std::span<const uint8_t> CachedSource::fetch(uint64_t number, SourceScratch& scratch) const {
  return cache_->fetch(number, *inner_, scratch);
}

FetchedSample CachedSource::fetch_unchecked(uint64_t number, SourceScratch& scratch) const {
  return cache_->fetch_unchecked(number, *inner_, scratch);
}

SourceSample CachedSource::describe(SampleId id, std::span<const uint8_t> bytes, SourceScratch& scratch,
                                    std::string& name) const {
  return inner_->describe(id, bytes, scratch, name);
}

void CachedSource::append_boxes(uint64_t number, std::span<const uint8_t> bytes, int64_t label,
                                SourceScratch& scratch, std::vector<LabelledBox>& boxes) const {
  inner_->append_boxes(number, bytes, label, scratch, boxes);
}

void CachedSource::read_fields(uint64_t number, std::span<const uint8_t> bytes, const FieldSpec& spec,
                               RecordFields& fields) const {
  inner_->read_fields(number, bytes, spec, fields);
}

SourceSample CachedSource::describe_with_fields(SampleId id, std::span<const uint8_t> bytes,
                                                const FieldSpec& spec, SourceScratch& scratch,
                                                std::string& name, RecordFields& fields) const {
  return inner_->describe_with_fields(id, bytes, spec, scratch, name, fields);
}

uint64_t CachedSource::start_reading(uint64_t number) const {
  return cache_->contains(number) ? cache_->start_reading(number) : inner_->start_reading(number);
}

RemoteSpan CachedSource::remote_span(uint64_t number) const {
  return cache_->contains(number) ? RemoteSpan{} : inner_->remote_span(number);
}

void CachedSource::expect(uint64_t number, SourceScratch& scratch) const {
  scratch.hint = {};
  scratch.hint.mapped = cache_->expect(number, scratch);
}

}  // namespace stoker
