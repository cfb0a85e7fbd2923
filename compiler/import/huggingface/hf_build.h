/* hf_build.h - the two ends of a network under construction that families do not see. */
#ifndef TY_COMPILER_IMPORT_HUGGINGFACE_HF_BUILD_H
#define TY_COMPILER_IMPORT_HUGGINGFACE_HF_BUILD_H

#include "base/error.h"

struct hf_net;

/* Ends the building with an error that has its place already; the first one counts. */
void hf_fail(struct hf_net *n, const ty_error *err);

#endif
