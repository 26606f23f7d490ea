// Bytes of files that are not on this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace stoker {

// Which bytes of which file. Every remote file of a process has a number of its own.
struct RemoteSpan {
  int64_t file = -1;  // -1: not remote, or nothing has to be fetched
  uint64_t offset = 0;
  uint64_t length = 0;
  friend bool operator==(const RemoteSpan&, const RemoteSpan&) = default;
};

struct TakenBytes {
  std::span<const uint8_t> bytes;
  std::shared_ptr<const void> held;  // keeps them alive
};

// Used from any thread.
class RemoteReader {
 public:
  RemoteReader() = default;
  virtual ~RemoteReader() = default;
  RemoteReader(const RemoteReader&) = delete;
  RemoteReader& operator=(const RemoteReader&) = delete;

  // Exactly the bytes of `span`, which are waited for. Throws the storage's error: kIo, kStorage; and
  // kClosed when they are not wanted any more.
  virtual TakenBytes take(const RemoteSpan& span) = 0;

  // The same, but read anew and at once, whatever was fetched ahead.
  virtual TakenBytes read_now(const RemoteSpan& span) = 0;

  // Counts bytes that came wrong, and were right, or not, when they were read again.
  virtual void count_reread() {}
};

// Calls a function that reads: without a schedule there is nothing to fetch ahead.
class DirectReader : public RemoteReader {
 public:
  using Read = std::function<std::vector<uint8_t>(const RemoteSpan&)>;

  explicit DirectReader(Read read) : read_(std::move(read)) {}

  TakenBytes take(const RemoteSpan& span) override;
  TakenBytes read_now(const RemoteSpan& span) override { return take(span); }

 private:
  Read read_;
};

// The files of one set: number i of the set has the number `first` + i.
struct RemoteFiles {
  std::shared_ptr<RemoteReader> reader;  // for threads without a schedule
  int64_t first = 0;
};

// Throws kBadArgument for a first number that is negative, or too large to count on from.
void check_numbers(const RemoteFiles& files);

// A run of numbers, unique in this process.
int64_t number_remote_files(uint64_t count);

// What a thread keeps of remote bytes from one sample to the next.
class RemoteScratch {
 public:
  RemoteReader* ahead = nullptr;  // who fetches by a schedule; nothing: the reader of each set is asked
  bool out_of_turn = false;       // what is taken is not in the schedule

  // The bytes of a span, which live until the next call or release(). What was taken last is not fetched
  // again.
  std::span<const uint8_t> take(const RemoteFiles& files, const RemoteSpan& span);

  // The same bytes once more, from the storage.
  std::span<const uint8_t> take_again(const RemoteFiles& files, const RemoteSpan& span);

  void release() { last_ = {}, span_ = {}; }

 private:
  RemoteReader& reader(const RemoteFiles& files) const { return ahead != nullptr ? *ahead : *files.reader; }

  RemoteSpan span_;
  TakenBytes last_;
};

}  // namespace stoker
