// The wire format of tf.train.Example, read in place and written canonically, without protobuf.
//
//     Example   { Features features = 1; }
//     Features  { map<string, Feature> feature = 1; }    on the wire an entry is { key = 1; value = 2; }
//     Feature   { oneof { BytesList = 1; FloatList = 2; Int64List = 3; } }
//     each list { repeated value = 1; }
//
// (tensorflow/core/example/example.proto and feature.proto)
//
// What protobuf accepts is accepted: fields in any order, packed and unpacked numbers, unknown fields, one
// message in several pieces, a key given twice (the last wins). Anything else is kBadExample, with
// Where.offset counted from the start of the payload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stoker {

// The numbers are those of the oneof. kNone: absent, or present without any list.
enum class FeatureKind : uint8_t { kNone = 0, kBytes = 1, kFloat = 2, kInt64 = 3 };

// "bytes", "float", "int64" or "none".
const char* kind_name(FeatureKind kind);

// One feature inside a payload, which it borrows. It has been checked from end to end, so that only a wrong
// expectation of the caller can fail. A view made by default is that of an absent feature.
class FeatureView {
 public:
  std::string_view key() const { return key_; }
  FeatureKind kind() const { return kind_; }
  size_t count() const { return count_; }  // of values

  // Append all values to `out`; those of kind bytes borrow from the payload.
  // Throw kBadExample when the feature is of another kind or absent.
  void append_to(std::vector<std::span<const uint8_t>>& out) const;
  void append_to(std::vector<float>& out) const;
  void append_to(std::vector<int64_t>& out) const;

  // The first value, without allocation. Throw kBadExample also when there is no value.
  std::span<const uint8_t> first_bytes() const;
  int64_t first_int64() const;

 private:
  friend struct FeatureReader;

  std::string_view key_;
  std::span<const uint8_t> entry_;  // the message of the map entry
  FeatureKind kind_ = FeatureKind::kNone;
  size_t first_list_ = 0;  // the entry's lists before this number were replaced by one of another kind
  size_t count_ = 0;
};

// A feature to look for, and what was found.
struct Wanted {
  std::string_view key;
  FeatureView view;
};

// Looks for all of `wanted` in one pass without allocation; `view` becomes that of an absent feature where
// the key is not there. Values of other features are stepped over unchecked.
void find_features(std::span<const uint8_t> payload, std::span<Wanted> wanted);

// All features that hold a list, sorted by the bytes of their keys. Checks every byte of the payload.
std::vector<FeatureView> parse_example(std::span<const uint8_t> payload);

using BytesValues = std::vector<std::span<const uint8_t>>;
using FloatValues = std::vector<float>;
using Int64Values = std::vector<int64_t>;

// A feature to write. It borrows the key and the bytes of bytes values.
struct NamedValues {
  std::string_view key;
  std::variant<BytesValues, FloatValues, Int64Values> values;
};

// Knows how long the Example of some features is before it is written, so that it is written in place.
// Borrows what the features borrow. Features and errors: see write_example().
class ExampleWriter {
 public:
  explicit ExampleWriter(std::vector<NamedValues> features);

  size_t size() const { return size_; }
  // `out` has size() bytes.
  void write(std::span<uint8_t> out) const;

 private:
  struct Lengths {
    size_t list;
    size_t feature;
    size_t entry;
  };
  static Lengths lengths_of(const NamedValues& feature);

  std::vector<NamedValues> features_;
  std::vector<Lengths> lengths_;
  size_t entries_ = 0;
  size_t size_ = 0;
};

// The bytes that C++ protobuf's deterministic serialisation gives: keys sorted by their bytes, numbers
// packed. (Protobuf for Python differs in one thing: it writes a key after longer keys that begin with it.)
// Equal features give equal bytes, in whatever order they come. Throws kBadArgument when a key comes twice or
// is not UTF-8, and when the Example would have 2 GiB or more, which no protobuf reader accepts.
std::string write_example(std::vector<NamedValues> features);

}  // namespace stoker
