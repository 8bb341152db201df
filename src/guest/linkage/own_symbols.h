// Changes the symbol table of this library as it is loaded, for shims.
#pragma once

namespace carve::guest {

// Removes a name from the table, so that look-ups no longer find it. Returns false if it is not there, or if
// the page cannot be written. The library's own calls of the function are already bound and are not affected.
bool hide_own_symbol(const char* name);

}  // namespace carve::guest
