#include "core/examples/fast_features.h"

#include <cstring>

namespace stoker {
namespace {

using Bytes = std::span<const uint8_t>;

// Tags of length-delimited fields.
constexpr uint8_t kFirst = 1 << 3 | 2;   // of every message: its only field, or the key of an entry
constexpr uint8_t kSecond = 2 << 3 | 2;  // the value of an entry
constexpr uint8_t kFloatList = 2 << 3 | 2;
constexpr uint8_t kInt64List = 3 << 3 | 2;

// A number of up to `bits` bits at `at`, which moves behind it; false if it is cut off or longer.
bool take_varint(const uint8_t*& at, const uint8_t* end, unsigned bits, uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < bits; shift += 7) {
    if (at == end) return false;
    const uint64_t byte = *at++;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// The bytes of a field with this tag at `at`, which moves behind them.
bool take_field(const uint8_t*& at, const uint8_t* end, uint8_t tag, Bytes& field) {
  uint64_t length = 0;
  if (at == end || *at != tag) return false;
  ++at;
  if (!take_varint(at, end, 35, length) || length > static_cast<uint64_t>(end - at)) return false;
  field = {at, static_cast<size_t>(length)};
  at += length;
  return true;
}

// A number of 64 bits, which may take ten bytes.
bool take_number(const uint8_t*& at, const uint8_t* end, int64_t& number) {
  constexpr size_t kMostBytes = 10;
  uint64_t value = 0;
  const uint8_t* const first = at;
  if (!take_varint(at, end, 70, value)) return false;
  number = static_cast<int64_t>(value);
  return static_cast<size_t>(at - first) < kMostBytes || at[-1] <= 1;
}

// The one field of a message.
bool only_field(Bytes message, uint8_t tag, Bytes& field) {
  const uint8_t* at = message.data();
  const uint8_t* end = at + message.size();
  return take_field(at, end, tag, field) && at == end;
}

bool read_list(uint8_t tag, Bytes packed, FastFeature& wanted) {
  if (tag == kFloatList ? packed.size() % sizeof(float) != 0 : tag != kInt64List) return false;
  wanted.kind = tag == kFloatList ? FeatureKind::kFloat : FeatureKind::kInt64;
  wanted.bytes = packed;
  return true;
}

bool read_value(Bytes feature, FastFeature& wanted) {
  if (wanted.kind != FeatureKind::kNone || feature.empty())
    return false;  // a key that comes twice, or no list
  Bytes list, value;
  const uint8_t tag = feature[0];
  if (!only_field(feature, tag, list)) return false;
  if (wanted.list && list.empty() && tag != kFirst) return read_list(tag, list, wanted);
  if (!only_field(list, kFirst, value)) return false;
  if (tag == kFirst) {
    wanted.kind = FeatureKind::kBytes;
    wanted.bytes = value;
    return true;
  }
  if (wanted.list) return read_list(tag, value, wanted);
  const uint8_t* at = value.data();
  const uint8_t* end = at + value.size();
  if (tag != kInt64List || !take_number(at, end, wanted.number) || at != end) return false;
  wanted.kind = FeatureKind::kInt64;
  return true;
}

bool read_entry(Bytes entry, std::span<FastFeature> wanted) {
  const uint8_t* at = entry.data();
  const uint8_t* end = at + entry.size();
  Bytes key, feature;
  if (!take_field(at, end, kFirst, key) || !take_field(at, end, kSecond, feature) || at != end) return false;
  for (FastFeature& seen : wanted) {
    if (seen.key.size() != key.size() || std::memcmp(seen.key.data(), key.data(), key.size()) != 0) continue;
    if (!read_value(feature, seen)) return false;
  }
  return true;
}

}  // namespace

bool find_features_fast(Bytes payload, std::span<FastFeature> wanted) {
  Bytes features;
  if (!only_field(payload, kFirst, features)) return false;
  const uint8_t* at = features.data();
  const uint8_t* end = at + features.size();
  while (at != end) {
    Bytes entry;
    if (!take_field(at, end, kFirst, entry) || !read_entry(entry, wanted)) return false;
  }
  return true;
}

bool unpack(Bytes packed, std::vector<int64_t>& numbers) {
  numbers.clear();
  const uint8_t* at = packed.data();
  const uint8_t* end = at + packed.size();
  while (at != end) {
    int64_t number = 0;
    if (!take_number(at, end, number)) return false;
    numbers.push_back(number);
  }
  return true;
}

}  // namespace stoker
