// A template for the records of one class, which differ only in the image and in values that depend on it.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/examples/example.h"

namespace stoker {

// What each record has of its own.
enum class RecordSlot { kImage, kFilename, kWidth, kHeight };

struct RecordImage {
  std::span<const uint8_t> image;  // as it is stored
  std::span<const uint8_t> filename;
  int64_t width = 0;
  int64_t height = 0;
};

// Immutable; safe in any thread.
class RecordTemplate {
 public:
  RecordTemplate() = default;
  // The features point into memory that this owns, which stays in place when this is moved.
  RecordTemplate(RecordTemplate&&) = default;
  RecordTemplate(const RecordTemplate&) = delete;
  RecordTemplate& operator=(const RecordTemplate&) = delete;

  // Adds a feature that is the same in all records; copies it.
  void add(const NamedValues& feature);
  // Adds a feature that holds only the value of a slot.
  void add(std::string_view key, RecordSlot slot);

  // The Example of one record, which borrows from `record` and from this.
  ExampleWriter fill(const RecordImage& record) const;

 private:
  struct FilledSlot {
    size_t feature;
    RecordSlot slot;
  };

  std::string_view keep(std::string_view bytes);

  std::deque<std::string> kept_;  // never moves what it holds
  std::vector<NamedValues> features_;
  std::vector<FilledSlot> slots_;
};

}  // namespace stoker
