// Files that stay open for positioned reads, but never too many of them at a time.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/tfrecord.h"

namespace stoker {

// add() first, then open() from any thread.
class OpenFiles {
 public:
  // At most `most` are open at a time, beside those that a reader still holds.
  explicit OpenFiles(size_t most) : most_(most) {}

  // `name` is what messages call the file; its path when empty.
  void add(std::string path, std::string name);

  size_t size() const { return places_.size(); }
  const std::string& name(size_t index) const { return places_[index].name; }

  // The file, opened now unless it still is. Throws as ShardFile's constructor.
  std::shared_ptr<const ShardFile> open(size_t index) const;

 private:
  struct Place {
    std::string path;
    std::string name;
  };

  std::vector<Place> places_;
  size_t most_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const ShardFile>> files_;
  mutable std::list<size_t> open_;  // the longest open first
};

}  // namespace stoker
