// Writes tf.train.Example canonically: every length is computed first, so that the bytes are written once.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "core/base/errors.h"
#include "core/base/little_endian.h"
#include "core/examples/example.h"
#include "core/examples/utf8.h"

namespace stoker {
namespace {

constexpr uint64_t kMaxMessageBytes = std::numeric_limits<int32_t>::max();

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kBadArgument, what);
}

size_t varint_size(uint64_t value) {
  return (static_cast<size_t>(std::bit_width(value | 1U)) + 6) / 7;
}

// The size of a field with a one-byte tag, its length and `size` bytes.
size_t delimited_size(size_t size) {
  return 1 + varint_size(size) + size;
}

class WireWriter {
 public:
  explicit WireWriter(std::span<uint8_t> out) : at_(out.data()) {}

  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) *at_++ = static_cast<uint8_t>(value | 0x80);
    *at_++ = static_cast<uint8_t>(value);
  }
  // The tag and the length of a length-delimited field; its bytes must follow.
  void open(uint32_t field, size_t size) {
    *at_++ = static_cast<uint8_t>(field << 3 | 2);
    varint(size);
  }
  void bytes(const void* data, size_t size) {
    if (size != 0) std::memcpy(at_, data, size);
    at_ += size;
  }
  void fixed32(uint32_t value) {
    store_le32(value, at_);
    at_ += sizeof value;
  }

 private:
  uint8_t* at_;
};

// What a list holds inside its packed field, in bytes.
size_t packed_size(const FloatValues& values) {
  return 4 * values.size();
}
size_t packed_size(const Int64Values& values) {
  size_t size = 0;
  for (int64_t value : values) size += varint_size(static_cast<uint64_t>(value));
  return size;
}

size_t list_size(const BytesValues& values) {
  size_t size = 0;
  for (const auto& value : values) size += delimited_size(value.size());
  return size;
}
template <typename Values>
size_t list_size(const Values& values) {
  return values.empty() ? 0 : delimited_size(packed_size(values));  // an empty packed field is not written
}

void write_list(const BytesValues& values, WireWriter& out) {
  for (const auto& value : values) {
    out.open(1, value.size());
    out.bytes(value.data(), value.size());
  }
}
void write_list(const FloatValues& values, WireWriter& out) {
  if (values.empty()) return;
  out.open(1, packed_size(values));
  for (float value : values) out.fixed32(std::bit_cast<uint32_t>(value));
}
void write_list(const Int64Values& values, WireWriter& out) {
  if (values.empty()) return;
  out.open(1, packed_size(values));
  for (int64_t value : values) out.varint(static_cast<uint64_t>(value));
}

uint32_t oneof_number(const NamedValues& feature) {
  static_assert(std::is_same_v<std::variant_alternative_t<0, decltype(feature.values)>, BytesValues> &&
                std::is_same_v<std::variant_alternative_t<1, decltype(feature.values)>, FloatValues>);
  return static_cast<uint32_t>(feature.values.index()) + 1;
}

void sort_and_check(std::vector<NamedValues>& features) {
  std::sort(features.begin(), features.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  for (size_t i = 0; i < features.size(); ++i) {
    const std::string key(features[i].key);
    if (!is_utf8(key)) refuse("the feature name '" + key + "' is not UTF-8");
    if (i != 0 && features[i - 1].key == key)
      refuse("feature '" + key + "' is given twice; keep one of the two");
  }
}

}  // namespace

ExampleWriter::Lengths ExampleWriter::lengths_of(const NamedValues& feature) {
  const size_t list = std::visit([](const auto& values) { return list_size(values); }, feature.values);
  const size_t value = delimited_size(list);
  return {list, value, delimited_size(feature.key.size()) + delimited_size(value)};
}

ExampleWriter::ExampleWriter(std::vector<NamedValues> features) : features_(std::move(features)) {
  sort_and_check(features_);
  lengths_.reserve(features_.size());
  for (const NamedValues& feature : features_) {
    lengths_.push_back(lengths_of(feature));
    entries_ += delimited_size(lengths_.back().entry);
  }
  size_ = delimited_size(entries_);
  if (size_ > kMaxMessageBytes) {
    refuse("the Example would have " + std::to_string(size_) +
           " bytes, and protobuf reads none of 2 GiB or more; split it or store smaller values");
  }
}

void ExampleWriter::write(std::span<uint8_t> out) const {
  WireWriter wire(out);
  wire.open(1, entries_);
  for (size_t i = 0; i < features_.size(); ++i) {
    const NamedValues& feature = features_[i];
    wire.open(1, lengths_[i].entry);
    wire.open(1, feature.key.size());
    wire.bytes(feature.key.data(), feature.key.size());
    wire.open(2, lengths_[i].feature);
    wire.open(oneof_number(feature), lengths_[i].list);
    std::visit([&](const auto& values) { write_list(values, wire); }, feature.values);
  }
}

std::string write_example(std::vector<NamedValues> features) {
  const ExampleWriter writer(std::move(features));
  std::string out(writer.size(), '\0');
  writer.write({reinterpret_cast<uint8_t*>(out.data()), out.size()});
  return out;
}

}  // namespace stoker
