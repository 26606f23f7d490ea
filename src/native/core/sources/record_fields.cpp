#include "core/sources/record_fields.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "core/base/errors.h"
#include "core/examples/utf8.h"

namespace stoker {
namespace {

using Bytes = std::span<const uint8_t>;

[[noreturn]] void refuse(std::string_view key, const std::string& what) {
  throw Error(ErrorCode::kBadExample, "feature '" + std::string(key) + "' " + what);
}

void check_count(const FieldColumn& column, size_t count) {
  if (column.fixed ? count == column.group : count % column.group == 0) return;
  const char* const unit = column.kind == FeatureKind::kBytes ? " bytes" : " values";
  refuse(column.key, "has " + std::to_string(count) + unit + "; it must have " +
                         (column.fixed ? "" : "a multiple of ") + std::to_string(column.group));
}

Bytes only_value(const FeatureView& view) {
  const Bytes value = view.first_bytes();
  if (view.count() == 1) return value;
  refuse(view.key(), "has " + std::to_string(view.count()) + " values; it must have one");
}

void check_bytes(const FieldColumn& column, Bytes value) {
  check_count(column, value.size());
  const std::string_view text(reinterpret_cast<const char*>(value.data()), value.size());
  if (column.text && !is_utf8(text)) refuse(column.key, "is not text in UTF-8");
}

template <typename Number>
Bytes in_memory(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const uint8_t*>(numbers.data()), numbers.size() * sizeof(Number)};
}

// A list without values is often written as no list at all.
template <typename Number>
Bytes read_numbers(const FieldColumn& column, const FeatureView& view, std::vector<Number>& numbers) {
  numbers.clear();
  if (view.kind() != FeatureKind::kNone || (column.fixed && column.group > 0)) view.append_to(numbers);
  check_count(column, numbers.size());
  return in_memory(numbers);
}

Bytes read_column(const FieldColumn& column, const FeatureView& view, std::vector<float>& fractions,
                  std::vector<int64_t>& numbers) {
  switch (column.kind) {
    case FeatureKind::kFloat:
      return read_numbers(column, view, fractions);
    case FeatureKind::kInt64:
      return read_numbers(column, view, numbers);
    case FeatureKind::kNone:
    case FeatureKind::kBytes:
      break;
  }
  const Bytes value = only_value(view);
  check_bytes(column, value);
  return value;
}

// False if the slow path has to read the feature.
bool take_column(const FieldColumn& column, const FastFeature& seen, std::vector<int64_t>& numbers,
                 Bytes& values) {
  if (seen.kind != column.kind) return false;
  values = seen.bytes;
  if (column.kind == FeatureKind::kBytes) {
    check_bytes(column, values);
    return true;
  }
  if (column.kind == FeatureKind::kInt64) {
    if (!unpack(seen.bytes, numbers)) return false;
    values = in_memory(numbers);
  }
  check_count(column, values.size() / column.value_bytes());
  return true;
}

void resize_all(const FieldSpec& spec, RecordFields& fields) {
  fields.columns.resize(spec.columns.size());
  fields.fractions.resize(spec.columns.size());
  fields.numbers.resize(spec.columns.size());
  fields.planes.resize(spec.planes.size());
}

// The header of a PNG: its signature, the length and the name of the first chunk, width, height, the bits of
// a sample and the type of colour, which is 0 of grey. Other images would silently be converted to grey, and
// their values are not class ids.
void check_mask(const FieldPlane& plane, Bytes file) {
  constexpr std::array<uint8_t, 16> kBegin{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n',
                                           0,    0,   0,   13,  'I',  'H',  'D',  'R'};
  constexpr size_t kBitsAt = 24, kColorAt = 25;
  const bool png = file.size() > kColorAt && std::memcmp(file.data(), kBegin.data(), kBegin.size()) == 0;
  if (png && file[kBitsAt] == plane.mask_bits && file[kColorAt] == 0) return;
  refuse(plane.key, "is not a greyscale PNG of " + std::to_string(plane.mask_bits) +
                        " bits, as a mask must be, whose values are its classes");
}

}  // namespace

void check_fields(const FieldSpec& spec) {
  const auto refuse_spec = [](const std::string& key, const char* what) {
    throw Error(ErrorCode::kBadArgument, "The field of the feature '" + key + "' " + what);
  };
  for (const FieldColumn& column : spec.columns) {
    if (column.kind == FeatureKind::kNone) refuse_spec(column.key, "has no kind of values");
    if (column.text && column.kind != FeatureKind::kBytes) refuse_spec(column.key, "is text, but not bytes");
    if (column.form != ColumnForm::kValues && column.kind != FeatureKind::kBytes)
      refuse_spec(column.key, "is a list of objects, but not bytes");
    if (column.form == ColumnForm::kText && !column.text)
      refuse_spec(column.key, "is a list of str, but not text");
    if (!column.fixed && column.group == 0) refuse_spec(column.key, "has values in groups of 0");
  }
  for (const FieldPlane& plane : spec.planes) {
    if (plane.mask_bits == 0 || plane.mask_bits == 8 || plane.mask_bits == 16) continue;
    refuse_spec(plane.key, "is a mask of other than 8 or 16 bits");
  }
}

void append_wanted(const FieldSpec& spec, std::vector<FastFeature>& wanted) {
  for (const FieldColumn& column : spec.columns) wanted.push_back({.key = column.key, .list = true});
  for (const FieldPlane& plane : spec.planes) wanted.push_back({.key = plane.key});
}

bool take_fields(std::span<const FastFeature> seen, const FieldSpec& spec, RecordFields& fields) {
  resize_all(spec, fields);
  const size_t columns = spec.columns.size();
  for (size_t i = 0; i < columns; ++i) {
    if (!take_column(spec.columns[i], seen[i], fields.numbers[i], fields.columns[i])) return false;
  }
  for (size_t i = 0; i < spec.planes.size(); ++i) {
    if (seen[columns + i].kind != FeatureKind::kBytes) return false;
    fields.planes[i] = seen[columns + i].bytes;
    if (spec.planes[i].is_mask()) check_mask(spec.planes[i], fields.planes[i]);
  }
  return true;
}

void read_fields(Bytes payload, const FieldSpec& spec, RecordFields& fields) {
  fields.fast.clear();
  append_wanted(spec, fields.fast);
  if (find_features_fast(payload, fields.fast) && take_fields(fields.fast, spec, fields)) return;
  resize_all(spec, fields);
  const size_t columns = spec.columns.size(), planes = spec.planes.size();
  fields.wanted.resize(columns + planes);
  for (size_t i = 0; i < columns; ++i) fields.wanted[i].key = spec.columns[i].key;
  for (size_t i = 0; i < planes; ++i) fields.wanted[columns + i].key = spec.planes[i].key;
  find_features(payload, fields.wanted);
  for (size_t i = 0; i < columns; ++i) {
    fields.columns[i] =
        read_column(spec.columns[i], fields.wanted[i].view, fields.fractions[i], fields.numbers[i]);
  }
  for (size_t i = 0; i < planes; ++i) {
    fields.planes[i] = only_value(fields.wanted[columns + i].view);
    if (spec.planes[i].is_mask()) check_mask(spec.planes[i], fields.planes[i]);
  }
}

}  // namespace stoker
