// Gives containers access to a slice through its CDI file and, for a slot or a claim, the directory of its
// attach point with a socket.
#pragma once

#include "node/slice/node_state.h"

namespace carve::node {

// Writes the CDI file of the slice, or of its attach point.
Outcome<void> announce(const NodeState&, const LiveSlice&);

// Removes the CDI file. The attach directory stays, because processes may still attach.
void withdraw(const NodeState&, const LiveSlice&);

// Creates the directory of the slice's attach point and listens in it, if the slice has an attach point and the
// sockets are being served.
Outcome<void> open_attach_point(const NodeState&, const LiveSlice&);

// Stops listening and removes the attach directory.
void close_attach_point(const NodeState&, const LiveSlice&);

// Opens the attach points of all slices when serving of the sockets begins.
void open_attach_points(const NodeState&);

}  // namespace carve::node
