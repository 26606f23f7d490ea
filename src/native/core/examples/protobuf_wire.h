// The protobuf wire format, read from bytes that may be anything (protobuf.dev/programming-guides/encoding).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "core/base/errors.h"

namespace stoker {

enum WireType : uint32_t { kVarint, kFixed64, kLengthDelimited, kGroup, kEndGroup, kFixed32 };

struct Tag {
  uint32_t field;
  uint32_t type;
  size_t offset;
};

// Reads the fields of one message, never beyond its end. Throws kBadExample with the offset from `origin`,
// the start of the outermost message. Nothing is allocated, and nothing recurses.
class WireReader {
 public:
  // Protobuf gives up at 100 levels of nesting. No Example has any group, so this is generous.
  static constexpr size_t kMaxGroupDepth = 32;

  // Bytes of a tag or a length, which have 32 bits; leading zeros that make them longer are refused, too.
  static constexpr size_t kMaxShortVarint = 5;

  WireReader(std::span<const uint8_t> message, const uint8_t* origin)
      : at_(message.data()), end_(message.data() + message.size()), origin_(origin) {}

  bool done() const { return at_ == end_; }
  size_t offset() const { return static_cast<size_t>(at_ - origin_); }

  uint64_t varint() {
    if (at_ != end_ && *at_ < 0x80) return *at_++;
    const size_t start = offset();
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (done()) fail(start, "a number is cut off");
      const uint64_t byte = *at_++;
      if (shift == 63 && byte > 1) break;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    fail(start, "a number has more than 64 bits");
  }

  Tag tag() {
    const size_t start = offset();
    const uint64_t value = varint();
    if (value < 8 || value > std::numeric_limits<uint32_t>::max() || offset() - start > kMaxShortVarint)
      fail(start, "a field has an impossible number");
    return {static_cast<uint32_t>(value >> 3), static_cast<uint32_t>(value & 7), start};
  }

  std::span<const uint8_t> fixed(size_t size) {
    if (left() < size) fail(offset(), "a number of " + std::to_string(size) + " bytes is cut off");
    return take(size);
  }

  std::span<const uint8_t> delimited() {
    const size_t start = offset();
    const uint64_t length = varint();
    if (offset() - start > kMaxShortVarint) fail(start, "a length has more than 32 bits");
    if (length > left()) {
      fail(start, "a field claims " + std::to_string(length) + " bytes where " + std::to_string(left()) +
                      " are left");
    }
    return take(static_cast<size_t>(length));
  }

  // Steps over the value of a field.
  void skip(const Tag& tag) {
    if (tag.type == kGroup) {
      skip_group(tag);
    } else {
      skip_scalar(tag);
    }
  }

  [[noreturn]] static void fail(size_t offset, const std::string& what) {
    throw Error(ErrorCode::kBadExample,
                "this is not a tf.train.Example: at byte " + std::to_string(offset) +
                    " of the record's payload " + what,
                {.path = {}, .record = kUnknown, .offset = static_cast<int64_t>(offset), .source = {}});
  }

 private:
  size_t left() const { return static_cast<size_t>(end_ - at_); }

  std::span<const uint8_t> take(size_t size) {
    const std::span<const uint8_t> bytes(at_, size);
    at_ += size;
    return bytes;
  }

  void skip_scalar(const Tag& tag) {
    switch (tag.type) {
      case kVarint:
        varint();
        return;
      case kFixed64:
        fixed(8);
        return;
      case kLengthDelimited:
        delimited();
        return;
      case kFixed32:
        fixed(4);
        return;
      default:
        fail(tag.offset,
             tag.type == kEndGroup ? "a group ends that is not open" : "a field has an unknown type");
    }
  }

  void skip_group(const Tag& outermost) {
    std::array<uint32_t, kMaxGroupDepth> open;
    size_t depth = 0;
    open[depth++] = outermost.field;
    while (depth != 0) {
      if (done()) fail(outermost.offset, "a group has no end");
      const Tag inner = tag();
      if (inner.type == kGroup) {
        if (depth == kMaxGroupDepth) fail(inner.offset, "groups are nested too deeply");
        open[depth++] = inner.field;
      } else if (inner.type == kEndGroup && inner.field == open[depth - 1]) {
        --depth;
      } else {
        skip_scalar(inner);
      }
    }
  }

  const uint8_t* at_;
  const uint8_t* end_;
  const uint8_t* origin_;
};

}  // namespace stoker
