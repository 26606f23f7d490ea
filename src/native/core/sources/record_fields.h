// Fields of a record beside its image, its label and its boxes: which a batch is to have, and what one record
// holds of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/examples/example.h"
#include "core/examples/fast_features.h"

namespace stoker {

// What batches have of a column: its values end to end, or a list of one object for each sample.
enum class ColumnForm : uint8_t { kValues, kBytes, kText };

// A feature whose values a batch has. Of kind bytes a record has one value, and its bytes are what
// is counted here.
struct FieldColumn {
  std::string key;
  FeatureKind kind = FeatureKind::kBytes;
  ColumnForm form = ColumnForm::kValues;  // of other kinds than bytes always this
  bool text = false;                      // bytes that are UTF-8, as they must be for kText
  bool fixed = false;  // every record has as many values as `group` says, and otherwise a multiple of it
  size_t group = 1;

  size_t value_bytes() const {
    return kind == FeatureKind::kBytes ? 1 : kind == FeatureKind::kFloat ? sizeof(float) : sizeof(int64_t);
  }
};

// A further image file of a record, as large as its first.
struct FieldPlane {
  std::string key;
  unsigned mask_bits = 0;  // of a mask, a greyscale PNG: 8 or 16; 0: an image that is shown as the first one

  bool is_mask() const { return mask_bits != 0; }
};

struct FieldSpec {
  std::vector<FieldColumn> columns;
  std::vector<FieldPlane> planes;

  bool wanted() const { return !columns.empty() || !planes.empty(); }
};

// Throws kBadArgument for fields that no record can have.
void check_fields(const FieldSpec& spec);

// What one record holds. It borrows from the record, and from what is kept here.
struct RecordFields {
  std::vector<std::span<const uint8_t>> columns;  // values as they lie in memory
  std::vector<std::span<const uint8_t>> planes;   // files
  std::vector<uint8_t> record;                    // where it was made for its fields alone
  // Kept from record to record.
  std::vector<FastFeature> fast;
  std::vector<Wanted> wanted;
  std::vector<std::vector<float>> fractions;  // of each column, where a record does not hold them in a piece
  std::vector<std::vector<int64_t>> numbers;  // of each column
};

// Throws kBadExample, which names the feature: it is missing, of another kind, has more or fewer values, is
// no text, or is no mask.
void read_fields(std::span<const uint8_t> payload, const FieldSpec& spec, RecordFields& fields);

// Appends the features of the fields to those that a caller reads by find_features_fast().
void append_wanted(const FieldSpec& spec, std::vector<FastFeature>& wanted);

// The fast path of read_fields(): takes the features that find_features_fast() has read. False if a record
// has to be read in the other way.
bool take_fields(std::span<const FastFeature> seen, const FieldSpec& spec, RecordFields& fields);

}  // namespace stoker
