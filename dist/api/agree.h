/* agree.h - all ranks of a channel learn what each of them is at, and go on only if that fits.
 *
 *     words differ in a fingerprint     texts are exchanged, all that call fail with TRAINYARD_E_MISMATCH
 *     a rank has a fault                texts are exchanged, all that call fail with its code and its words
 *     a rank leaves                     all that call or have joined fail with TRAINYARD_E_LOST; it waits for the
 * others some have joined                  they take part in what the others call, until all have joined
 *
 * Every rank decides from the same words, so all decide alike.
 */
#ifndef TY_DIST_API_AGREE_H
#define TY_DIST_API_AGREE_H

#include "dist/api/channel.h"

/* Fills call->err, answer and stop; returns its code. A failure of the comm ends the channel: see channel->lost. */
int ty_agree_and_carry(ty_channel *channel, ty_call *call);

#endif
