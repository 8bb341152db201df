// Orphans are programs and slices whose records the database has lost (docs/decisions/0024-partial-loss.md).
// If the program's object exists, the program is adopted: its record is written again. If an object needs the
// name for another program, the orphan is ended immediately. An orphan without an owner is ended after a
// grace period, in which an operator can restore the right database. Each case produces an event.
//
// Used by the thread of the service reconciler.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "controller/objects/event_inbox.h"
#include "controller/objects/object_registry.h"
#include "controller/services/effects.h"

namespace carve::controller {

class Orphans {
 public:
  // Callbacks into the reconcilers that have the records.
  struct Loops {
    std::function<bool(const std::string& program)> has_record;
    // Rewrites the record. Returns false if no object has a place for the program.
    std::function<bool(const std::string& program, const ProgramOwner&)> adopt;
  };
  Orphans(const ObjectRegistry& objects, Effects& effects, EventInbox& events, Loops loops, Ns grace)
      : objects_(objects), effects_(effects), events_(events), loops_(std::move(loops)), grace_(grace) {}

  // Searches for orphans, in every turn while there is one and otherwise every 10 s, and carries out the next
  // step for each. Returns whether something changed.
  bool turn(Ns now);
  // Returns whether a program or slice with this name is left, so that the name is still taken.
  bool has(const std::string& name) const { return orphans_.contains(name); }

 private:
  struct Orphan {
    ProgramOwner owner;
    Ns found_at = 0;
    Ns terminated_at = 0;  // When SIGTERM was sent; 0 if it was not.
    bool is_reported = false;
  };

  void look(Ns now);
  bool is_in_the_way(const ProgramOwner&) const;
  // Carries out the next step to end the orphan. Returns true when nothing of it is left.
  bool end(const std::string& name, Orphan&, Ns now);
  void report(const std::string& name, const ProgramOwner&, objects::EventReason, const std::string& what);

  const ObjectRegistry& objects_;
  Effects& effects_;
  EventInbox& events_;
  const Loops loops_;
  const Ns grace_;
  std::map<std::string, Orphan> orphans_;  // Keyed by the program's name.
  Ns looked_at_ = 0;                       // Time of the last search; 0 before the first one.
};

}  // namespace carve::controller
