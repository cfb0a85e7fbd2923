/* events.h - scalars and texts for TensorBoard: one event file of one run.
 *
 * A directory is a run; give training and validation a directory each (`.../train`, `.../validation`). Every process
 * start opens a new file, because a tailing reader cannot get past a torn record in the middle of an old one.
 *
 *     ty_events *events;
 *     if (ty_events_open("/opt/ml/output/tensorboard/train", -1, &events, err) < 0) ...
 *     ty_events_scalar(events, step, ty_events_now(), "loss", 0.25f, err);
 *     ty_events_flush(events, err);     // at a checkpoint, at an epoch's end, on SIGTERM
 *     ty_events_close(events, err);
 *
 * Whole records are kept in memory for at most TY_EVENTS_FLUSH_S seconds (looked at when a scalar comes) and leave with
 * one write() each. When a write fails the file is cut back to its last whole record, what was kept is dropped and the
 * error returned; the next flush tries again, so that a full disk costs a part of a curve and never a file.
 */
#ifndef TY_CONTAINER_OUTPUT_EVENTS_H
#define TY_CONTAINER_OUTPUT_EVENTS_H

#include "base/buf.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

#define TY_EVENTS_FLUSH_S    5.0
#define TY_EVENTS_TAG_BYTES  255
#define TY_EVENTS_TEXT_BYTES 1024

typedef struct ty_events ty_events;

/* Creates the directory and its parents if needed, and a file named by TensorBoard's rule:
 * events.out.tfevents.<10-digit seconds>.<host>.<pid>.<counter>. `resume_step` >= 0 says that the run goes on with that
 * step: readers then forget what earlier files in the directory say about it and later steps. -1: a new run, which
 * makes them forget all of it. */
int ty_events_open(const char *dir, int64_t resume_step, ty_events **out, ty_error *err);
/* The path of the file. Owned by *events. */
const char *ty_events_path(const ty_events *events);
/* One value. Steps must rise within a tag: a value at a step that is not after the tag's last one is left out, since a
 * reader would throw away earlier points for it. A wall time that is not finite is replaced by the current one.
 * `tag` is UTF-8, 1 to TY_EVENTS_TAG_BYTES bytes; the part before the first '/' is its group. */
int ty_events_scalar(ty_events *events, int64_t step, double wall_s, const char *tag, float value, ty_error *err);
/* A text, in the same way: what TensorBoard shows under "Text". At most TY_EVENTS_TEXT_BYTES, UTF-8. */
int ty_events_text(ty_events *events, int64_t step, double wall_s, const char *tag, const char *text, ty_error *err);
/* Writes what is kept. */
int ty_events_flush(ty_events *events, ty_error *err);
/* Flushes, syncs, closes and frees, in any case. NULL is allowed. */
int ty_events_close(ty_events *events, ty_error *err);
/* Seconds since 1970 as wall time. */
double ty_events_now(void);

/* The messages alone, without framing (Event and Summary of TensorFlow's event.proto and summary.proto). All append to
 * `out` and return 0, or -1 when they do not fit. */
int ty_event_version(ty_buf *out, double wall_s);
int ty_event_session_start(ty_buf *out, double wall_s, int64_t step);
/* `with_metadata`: name the scalars plugin too, needed once per tag and file. */
int ty_event_scalar(ty_buf *out, double wall_s, int64_t step, const char *tag, float value, bool with_metadata);
int ty_event_text(ty_buf *out, double wall_s, int64_t step, const char *tag, const char *text, bool with_metadata);

#endif
