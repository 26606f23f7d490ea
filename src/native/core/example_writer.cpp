// Writes tf.train.Example canonically: every length is computed first, so that the bytes are written once.
#include <algorithm>
#include <bit>
#include <limits>

#include "core/errors.h"
#include "core/example.h"
#include "core/utf8.h"

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
  explicit WireWriter(size_t bytes) { out_.reserve(bytes); }

  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(value | 0x80));
    out_.push_back(static_cast<char>(value));
  }
  // The tag and the length of a length-delimited field; its bytes must follow.
  void open(uint32_t field, size_t size) {
    out_.push_back(static_cast<char>(field << 3 | 2));
    varint(size);
  }
  void bytes(const void* data, size_t size) { out_.append(static_cast<const char*>(data), size); }
  void fixed32(uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) out_.push_back(static_cast<char>(value >> shift));
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
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

struct Sizes {
  size_t list;
  size_t feature;
  size_t entry;
};

Sizes sizes_of(const NamedValues& feature) {
  const size_t list = std::visit([](const auto& values) { return list_size(values); }, feature.values);
  const size_t value = delimited_size(list);
  return {list, value, delimited_size(feature.key.size()) + delimited_size(value)};
}

uint32_t oneof_number(const NamedValues& feature) {
  static_assert(std::is_same_v<std::variant_alternative_t<0, decltype(feature.values)>, BytesValues> &&
                std::is_same_v<std::variant_alternative_t<1, decltype(feature.values)>, FloatValues>);
  return static_cast<uint32_t>(feature.values.index()) + 1;
}

void write_feature(const NamedValues& feature, const Sizes& sizes, WireWriter& out) {
  out.open(1, sizes.entry);
  out.open(1, feature.key.size());
  out.bytes(feature.key.data(), feature.key.size());
  out.open(2, sizes.feature);
  out.open(oneof_number(feature), sizes.list);
  std::visit([&](const auto& values) { write_list(values, out); }, feature.values);
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

std::string write_example(std::vector<NamedValues> features) {
  sort_and_check(features);
  std::vector<Sizes> sizes;
  size_t total = 0;
  for (const NamedValues& feature : features) {
    sizes.push_back(sizes_of(feature));
    total += delimited_size(sizes.back().entry);
  }
  if (delimited_size(total) > kMaxMessageBytes) {
    refuse("the Example would have " + std::to_string(delimited_size(total)) +
           " bytes, and protobuf reads none of 2 GiB or more; split it or store smaller values");
  }
  WireWriter out(delimited_size(total));
  out.open(1, total);
  for (size_t i = 0; i < features.size(); ++i) write_feature(features[i], sizes[i], out);
  return out.take();
}

}  // namespace stoker
