/* channels.h - the job's input channels: inputdataconfig.json, and what lies in their folders.
 *
 * A channel is a named folder of data, /opt/ml/input/data/<name>. Which channels exist is said by the file alone: the
 * folder input/data also holds manifests and, in Pipe mode, FIFOs.
 */
#ifndef TY_CONTAINER_CONFIG_CHANNELS_H
#define TY_CONTAINER_CONFIG_CHANNELS_H

#include "container/config/value.h"

typedef enum ty_input_mode {
    TY_INPUT_FILE,      /* all data is on the disk before we start */
    TY_INPUT_FAST_FILE, /* the same view, fetched while it is read */
    TY_INPUT_PIPE,      /* a FIFO <path>_<epoch> for each epoch; the folder does not exist */
} ty_input_mode;

typedef struct ty_channel {
    const char *name;
    const char *path; /* /opt/ml/input/data/<name> */
    ty_input_mode mode;
    bool sharded;             /* ShardedByS3Key: each host has its part, which may be empty */
    bool record_io;           /* Pipe mode: records come wrapped */
    const char *content_type; /* "" if not given */
} ty_channel;

typedef struct ty_channels {
    const ty_channel *items; /* [n_items], sorted by name */
    size_t n_items;
    ty_value whole; /* the file, as SM_INPUT_DATA_CONFIG shows it; an empty dict without one */
} ty_channels;

/* doc: the parsed file; NULL means no channels. input_data: the folder of the channels. Errors: TY_E_TYPE; TY_E_RANGE
 * for a name that is no channel name (so that no path leaves input_data) or a word that is no mode. */
int ty_channels_init(ty_channels *c, ty_arena *a, const ty_doc *doc, const char *input_data, ty_error *err);
/* The channel of that name; NULL with TY_E_CHANNEL, naming the declared ones, if there is none. */
const ty_channel *ty_channels_find(const ty_channels *c, const char *name, ty_error *err);
/* "File", "FastFile", "Pipe". */
const char *ty_input_mode_name(ty_input_mode mode);

typedef struct ty_channel_file {
    const char *path; /* <channel path>/<name> */
    const char *name; /* below the channel's folder: "part-0.csv", "2024/part-0.csv" */
    uint64_t n_bytes;
} ty_channel_file;

typedef struct ty_channel_files {
    const ty_channel_file *items; /* [n_items], sorted by name as bytes: the same order on every machine */
    size_t n_items;
    uint64_t n_bytes; /* of all */
} ty_channel_files;

/* Lists the data files of a File or FastFile channel, in sub-folders too. Left out: names that begin with a dot,
 * manifests (<name>-manifest), markers of writers (_SUCCESS, _started_*, _committed_*) and lost+found. Symbolic links
 * are followed, cycles are not. Errors, with the path: TY_E_CHANNEL if the folder is not there, or has no data file
 * although the channel is not sharded; TY_E_CONFIG for a Pipe channel. */
int ty_channel_list(const ty_channel *channel, ty_arena *a, ty_channel_files *out, ty_error *err);

#endif
