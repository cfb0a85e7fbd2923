/* code.h - the user's source folder, /opt/ml/code: filled from where the job says, unless something is there already.
 *
 * The rule of the contract: a folder with anything in it is taken as it is (code baked into the image or mounted wins
 * over what was submitted). Otherwise the submitted source is a folder (copied), a tar archive (unpacked) or a single
 * file (copied). Complete or empty: if filling fails half-way, the folder is emptied again, so that the next start does
 * not take the half for code.
 */
#ifndef TY_ENTRYPOINT_CODE_H
#define TY_ENTRYPOINT_CODE_H

#include "base/error.h"

typedef enum ty_code_outcome {
    TY_CODE_PRESENT, /* the folder had content; nothing was fetched */
    TY_CODE_FETCHED,
    TY_CODE_ABSENT, /* no content, and no source was named */
} ty_code_outcome;

/* source: sagemaker_submit_directory; NULL or "" for none. "file://" in front is taken off. s3:// addresses are refused
 * with what to do instead. */
int ty_code_fetch(const char *source, const char *code_folder, ty_code_outcome *outcome, ty_error *err);

#endif
