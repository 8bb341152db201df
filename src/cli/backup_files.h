// The files of a backup. A backup is a folder with one folder for each program and the file `backup.json`, which
// is written last. It contains each program's databases and small files. It does not contain locks, the
// simulated devices, and the programs of services with their logs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/failure.h"

namespace carve::cli {

struct BackupFile {
  std::string name;
  uint64_t bytes = 0;
};

// The files of one program.
struct BackupPart {
  std::string program;  // "agent" or "controller"; also the folder's name.
  std::string state;    // The program's state folder.
  std::vector<BackupFile> files;
};

// backup.json
struct Backup {
  std::string version;  // Of Carve: "0.3.0".
  std::string created;  // RFC 3339.
  std::vector<BackupPart> parts;
};

// Writes a backup of these state folders, whose programs may be running, to the folder `to`, which must not exist.
// Fails if a file cannot be read or copied; then there is no such folder.
Outcome<Backup> write_backup(const std::vector<BackupPart>& parts, const std::string& to, int64_t now_ns);

// Reads backup.json of a backup.
Outcome<Backup> read_backup(const std::string& folder);

// Puts the files of one part into its state folder and moves the files that are there into a new folder
// `before-restore-TIME` in it. Returns that folder, or an empty text if there was none to move. Fails if the
// program is running, or if a file of the backup is missing, damaged or has another size; then the state is
// unchanged.
Outcome<std::string> restore_part(const std::string& backup, const BackupPart& part, int64_t now_ns);

}  // namespace carve::cli
