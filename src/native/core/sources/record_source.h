// Samples that are records of shards, of any layout that names its features.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/examples/fast_features.h"
#include "core/examples/label.h"
#include "core/sources/record_set.h"
#include "core/sources/sample_source.h"

namespace stoker {

// Where a record holds what. An empty key is one that the layout does not have.
struct RecordKeys {
  std::string image;
  LabelKeys label;
  std::string source;  // the source's name, for messages
  ImageEncoding encoding = ImageEncoding::kFile;
  std::string height;  // of raw images; without height or width they are squares
  std::string width;
  std::string order;  // "HWC" or "CHW"; a record without it is HWC
  // Before xmin, ymin, xmax and ymax, a list each. Without a slash at its end it is the key of one list of
  // them all, four values for an object, in TFDS's order: ymin, xmin, ymax, xmax.
  std::string box_prefix;
};

class RecordSource : public SampleSource {
 public:
  RecordSource(std::shared_ptr<const RecordSet> records, RecordKeys keys, PayloadCheck check);

  uint64_t size() const override { return records_->size(); }
  std::span<const uint8_t> fetch(uint64_t number, SourceScratch& scratch) const override;
  FetchedSample fetch_unchecked(uint64_t number, SourceScratch& scratch) const override;

  // Throws kBadExample: a feature is missing or of another kind, a label is not one-hot, a raw image is not
  // of the length that its shape asks for, or there is no such object.
  SourceSample describe(SampleId id, std::span<const uint8_t> bytes, SourceScratch& scratch,
                        std::string& name) const override;
  // Throws kBadExample when the edges, or the labels, are not as many as the boxes.
  void append_boxes(uint64_t number, std::span<const uint8_t> bytes, int64_t label, SourceScratch& scratch,
                    std::vector<LabelledBox>& boxes) const override;
  void read_fields(uint64_t, std::span<const uint8_t> bytes, const FieldSpec& spec,
                   RecordFields& fields) const override {
    stoker::read_fields(bytes, spec, fields);
  }
  SourceSample describe_with_fields(SampleId id, std::span<const uint8_t> bytes, const FieldSpec& spec,
                                    SourceScratch& scratch, std::string& name,
                                    RecordFields& fields) const override;
  uint64_t start_reading(uint64_t number) const override { return records_->start_reading(number); }
  RemoteSpan remote_span(uint64_t number) const override { return records_->remote_span(number); }
  void expect(uint64_t number, SourceScratch& scratch) const override { records_->expect(number, scratch); }
  Where where(uint64_t number) const override { return records_->where(number); }

 private:
  // Number of features that describe_fast() reads beside fields.
  size_t feature_count() const;
  // The fast path of describe(), for whole images in records as writers lay them out; nothing for others.
  // Features are read into the first feature_count() of `seen`, and those behind them are the caller's.
  std::optional<SourceSample> describe_fast(std::span<const uint8_t> bytes, std::span<FastFeature> seen,
                                            std::string& name) const;
  // The shape of a raw image, in the same way; false if it is not clear.
  bool shape(StoredImage& image, std::span<const FastFeature> seen) const;
  // Fills in the shape of a raw image.
  void shape(StoredImage& image, std::span<const Wanted> wanted) const;

  std::shared_ptr<const RecordSet> records_;
  RecordKeys keys_;
  std::string corners_[4];  // the keys of xmin, ymin, xmax and ymax; packed: only the first, of all
  std::string box_label_;
  std::string box_class_;  // of labels where there are none under box_label_
  bool packed_ = false;
  PayloadCheck check_;
};

}  // namespace stoker
