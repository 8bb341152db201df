// Gives containers access to a slice through its CDI file and, for a slot, the attach directory with its
// socket.
#pragma once

#include "node/slice/node_state.h"

namespace carve::node {

// Writes the CDI file of the slice, or of its slot.
Outcome<void> announce(const NodeState&, const LiveSlice&);

// Removes the CDI file. The slot's attach directory stays, because processes may still attach.
void withdraw(const NodeState&, const LiveSlice&);

// Creates the attach directory of the slice's slot and listens in it, if the slice has a slot and the sockets
// are being served.
Outcome<void> open_slot(const NodeState&, const LiveSlice&);

// Stops listening and removes the attach directory.
void close_slot(const NodeState&, const LiveSlice&);

// Opens the slots of all slices when serving of the sockets begins.
void open_slots(const NodeState&);

}  // namespace carve::node
