// Copies databases for a backup and back.
#pragma once

#include <string>

#include "core/failure.h"

namespace carve::sqlite {

// Copies a database into a new file of mode 0600, also while another process writes it: the copy has one of its
// committed states. It is synced, consists of this one file, and has passed SQLite's integrity check. Fails if
// `from` is not a database or is damaged, if `to` exists, or if the disk is full; then there is no `to`.
Outcome<void> copy_database(const std::string& from, const std::string& to);

}  // namespace carve::sqlite
