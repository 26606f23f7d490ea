#include "core/examples/example.h"

#include <bit>
#include <map>
#include <type_traits>
#include <utility>

#include "core/base/errors.h"
#include "core/base/little_endian.h"
#include "core/examples/protobuf_wire.h"
#include "core/examples/utf8.h"

namespace stoker {
namespace {

using Bytes = std::span<const uint8_t>;

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Calls `visit` with the bytes of each length-delimited field `field` of `message`, in order.
template <typename Visit>
void for_each_part(Bytes message, const uint8_t* origin, uint32_t field, Visit visit) {
  WireReader reader(message, origin);
  while (!reader.done()) {
    const Tag tag = reader.tag();
    if (tag.field == field && tag.type == kLengthDelimited) {
      visit(reader.delimited());
    } else {
      reader.skip(tag);
    }
  }
}

template <typename Visit>
void for_each_entry(Bytes payload, Visit visit) {
  for_each_part(payload, payload.data(), 1,
                [&](Bytes features) { for_each_part(features, payload.data(), 1, visit); });
}

// Calls `visit(kind, list)` for each list in a map entry. Protobuf merges the pieces of a message by reading
// on from one to the next, so it does not matter how many pieces the entry's value has.
template <typename Visit>
void for_each_list(Bytes entry, const uint8_t* origin, Visit visit) {
  for_each_part(entry, origin, 2, [&](Bytes feature) {
    WireReader reader(feature, origin);
    while (!reader.done()) {
      const Tag tag = reader.tag();
      if (tag.field <= 3 && tag.type == kLengthDelimited) {
        visit(static_cast<FeatureKind>(tag.field), reader.delimited());
      } else {
        reader.skip(tag);
      }
    }
  });
}

float load_float(const uint8_t* p) {
  return std::bit_cast<float>(load_le32(p));
}

// Calls `visit` for the value or values of one field of a list. False if it is an unknown field.
template <typename Visit>
bool read_values(WireReader& reader, uint32_t type, const uint8_t*, std::type_identity<Bytes>, Visit& visit) {
  if (type != kLengthDelimited) return false;
  visit(reader.delimited());
  return true;
}

template <typename Visit>
bool read_values(WireReader& reader, uint32_t type, const uint8_t*, std::type_identity<float>, Visit& visit) {
  if (type == kFixed32) {
    visit(load_float(reader.fixed(4).data()));
    return true;
  }
  if (type != kLengthDelimited) return false;
  const size_t start = reader.offset();
  const Bytes packed = reader.delimited();
  if (packed.size() % 4 != 0) {
    WireReader::fail(start,
                     "a list of floats has " + std::to_string(packed.size()) + " bytes, no multiple of 4");
  }
  for (size_t i = 0; i < packed.size(); i += 4) visit(load_float(packed.data() + i));
  return true;
}

template <typename Visit>
bool read_values(WireReader& reader, uint32_t type, const uint8_t* origin, std::type_identity<int64_t>,
                 Visit& visit) {
  if (type == kVarint) {
    visit(static_cast<int64_t>(reader.varint()));
    return true;
  }
  if (type != kLengthDelimited) return false;
  WireReader packed(reader.delimited(), origin);
  while (!packed.done()) visit(static_cast<int64_t>(packed.varint()));
  return true;
}

template <typename Value, typename Visit>
void for_each_value(Bytes list, const uint8_t* origin, Visit visit) {
  WireReader reader(list, origin);
  while (!reader.done()) {
    const Tag tag = reader.tag();
    if (tag.field != 1 || !read_values(reader, tag.type, origin, std::type_identity<Value>{}, visit)) {
      reader.skip(tag);
    }
  }
}

size_t count_values(FeatureKind kind, Bytes list, const uint8_t* origin) {
  size_t count = 0;
  const auto count_value = [&](auto) { ++count; };
  switch (kind) {
    case FeatureKind::kNone:
      break;
    case FeatureKind::kBytes:
      for_each_value<Bytes>(list, origin, count_value);
      break;
    case FeatureKind::kFloat:
      for_each_value<float>(list, origin, count_value);
      break;
    case FeatureKind::kInt64:
      for_each_value<int64_t>(list, origin, count_value);
      break;
  }
  return count;
}

template <typename Value>
constexpr FeatureKind kKindOf = std::is_same_v<Value, Bytes>   ? FeatureKind::kBytes
                                : std::is_same_v<Value, float> ? FeatureKind::kFloat
                                                               : FeatureKind::kInt64;

}  // namespace

// Makes views and reads through them.
struct FeatureReader {
  // The key and the outline of a map entry; a key that is missing is an empty one.
  static std::string_view key_of(Bytes entry, const uint8_t* origin) {
    std::string_view key;
    for_each_part(entry, origin, 1, [&](Bytes bytes) { key = text_of(bytes); });
    return key;
  }

  static FeatureView view_of(Bytes entry, const uint8_t* origin, std::string_view key) {
    FeatureView view;
    view.key_ = key;
    view.entry_ = entry;
    size_t number = 0;
    for_each_list(entry, origin, [&](FeatureKind kind, Bytes list) {
      const size_t count = count_values(kind, list, origin);
      if (kind != view.kind_) {
        view.kind_ = kind;
        view.first_list_ = number;
        view.count_ = 0;
      }
      view.count_ += count;
      ++number;
    });
    return view;
  }

  static FeatureView absent(std::string_view key) {
    FeatureView view;
    view.key_ = key;
    return view;
  }

  template <typename Value, typename Visit>
  static void read(const FeatureView& view, size_t at_least, Visit visit) {
    if (view.kind_ != kKindOf<Value> || view.count_ < at_least) refuse(view, kKindOf<Value>);
    size_t number = 0;
    for_each_list(view.entry_, view.entry_.data(), [&](FeatureKind, Bytes list) {
      if (number++ >= view.first_list_) for_each_value<Value>(list, view.entry_.data(), visit);
    });
  }

  template <typename Value>
  static Value first(const FeatureView& view) {
    Value value{};
    bool seen = false;
    read<Value>(view, 1, [&](Value next) {
      if (!std::exchange(seen, true)) value = next;
    });
    return value;
  }

  template <typename Value>
  static void append(const FeatureView& view, std::vector<Value>& out) {
    out.reserve(out.size() + view.count_);
    read<Value>(view, 0, [&](Value value) { out.push_back(value); });
  }

  [[noreturn]] static void refuse(const FeatureView& view, FeatureKind expected) {
    const std::string state = view.kind_ == FeatureKind::kNone ? "is missing"
                              : view.kind_ == expected ? "is empty"
                                                       : std::string("is of kind ") + kind_name(view.kind_);
    throw Error(ErrorCode::kBadExample, "feature '" + std::string(view.key_) + "' " + state +
                                            "; it must hold " + kind_name(expected) +
                                            " values: check which schema the dataset was written with");
  }
};

const char* kind_name(FeatureKind kind) {
  switch (kind) {
    case FeatureKind::kNone:
      break;
    case FeatureKind::kBytes:
      return "bytes";
    case FeatureKind::kFloat:
      return "float";
    case FeatureKind::kInt64:
      return "int64";
  }
  return "none";
}

void FeatureView::append_to(std::vector<Bytes>& out) const {
  FeatureReader::append(*this, out);
}
void FeatureView::append_to(std::vector<float>& out) const {
  FeatureReader::append(*this, out);
}
void FeatureView::append_to(std::vector<int64_t>& out) const {
  FeatureReader::append(*this, out);
}

Bytes FeatureView::first_bytes() const {
  return FeatureReader::first<Bytes>(*this);
}
int64_t FeatureView::first_int64() const {
  return FeatureReader::first<int64_t>(*this);
}

void find_features(Bytes payload, std::span<Wanted> wanted) {
  for (Wanted& feature : wanted) feature.view = FeatureReader::absent(feature.key);
  for_each_entry(payload, [&](Bytes entry) {
    const std::string_view key = FeatureReader::key_of(entry, payload.data());
    for (Wanted& feature : wanted) {
      if (feature.key == key) feature.view = FeatureReader::view_of(entry, payload.data(), key);
    }
  });
}

std::vector<FeatureView> parse_example(Bytes payload) {
  std::map<std::string_view, FeatureView> features;
  for_each_entry(payload, [&](Bytes entry) {
    std::string_view key;
    for_each_part(entry, payload.data(), 1, [&](Bytes name) {
      key = text_of(name);
      if (is_utf8(key)) return;  // a name that another replaces must be text, too, as protobuf demands
      const auto offset = static_cast<size_t>(name.data() - payload.data());
      WireReader::fail(offset, "the name of a feature is not UTF-8");
    });
    features.insert_or_assign(key,
                              FeatureReader::view_of(entry, payload.data(), key));  // the last one counts
  });
  std::vector<FeatureView> kept;
  for (const auto& [key, view] : features) {
    if (view.kind() != FeatureKind::kNone) kept.push_back(view);
  }
  return kept;
}

}  // namespace stoker
