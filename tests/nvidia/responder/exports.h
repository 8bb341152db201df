// Memory that is exported to a descriptor of /dev/nvidiactl, as by cuMemExportToShareableHandle, and imported
// from it by the same process. The export ends when the process closes the last descriptor of the file.
#pragma once

#include "ioctls.h"

namespace responder {

// NV0000_CTRL_CMD_OS_UNIX_EXPORT_OBJECT_TO_FD, ..._GET_EXPORT_OBJECT_INFO and ..._IMPORT_OBJECT_FROM_FD.
Status export_object(const Control& c);
Status export_info(const Control& c);
Status import_object(const Control& c);

// Must be called before a descriptor is closed.
void forget_export(int file);

}  // namespace responder
