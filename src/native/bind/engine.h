// The engine as Python holds it.
#pragma once

#include <unistd.h>

#include <memory>
#include <utility>

#include "bind/bind.h"
#include "core/base/errors.h"
#include "core/engine/engine.h"

namespace stoker::bind {

// An engine in the hands of Python. In a process that was forked from the one that made it, its threads do
// not exist and its locks may be held for ever: there it is left alone, also at the end.
class Engine {
 public:
  Engine(std::shared_ptr<const SampleSource> source, EngineSpec spec)
      : engine_(std::make_unique<BatchEngine>(std::move(source), std::move(spec))), process_(getpid()) {}
  ~Engine() {
    if (getpid() != process_) {
      static_cast<void>(engine_.release());
      nb::set_leak_warnings(false);  // of what the engine reads
      return;
    }
    // Python lets go of it with the GIL held, which a worker in the middle of a conversion waits for.
    WithoutGil nogil;
    engine_->close();
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  BatchEngine& get() {
    if (getpid() == process_) return *engine_;
    throw Error(ErrorCode::kClosed, "This engine was made before a fork, and threads do not survive one");
  }

  void close() {
    if (getpid() == process_) engine_->close();
  }

 private:
  std::unique_ptr<BatchEngine> engine_;
  pid_t process_;
};

// What it has done, and does: counters and traces.
void add_totals(nb::class_<Engine>& engine);

}  // namespace stoker::bind
