/* Bytes from the network, in two ways. An even first byte: all that follows goes to a link as it is, in pieces, as a
 * stranger would send it. An odd one: it is a list of frames (kind u8, length u16, payload) that a peer with the secret
 * sends properly, so that the messages' readers see every payload. */
#include "dist/agent/link.h"
#include "dist/agent/message.h"

#include <stdlib.h>
#include <string.h>

enum { N_HOSTS = 2 };

static int read_message(void *ctx, int kind, const uint8_t *payload, size_t n_bytes, ty_error *err)
{
    (void)ctx;
    static ty_hello hello;
    ty_reader r = {.at = payload, .end = payload + n_bytes};
    ty_map_host hosts[N_HOSTS];
    ty_map map = {.n_hosts = N_HOSTS, .hosts = hosts};
    ty_exit e;
    ty_agent_end end;
    ty_page_view view;
    char text[32];
    switch (kind % 8) {
    case 0:
        return ty_get_hello(&r, &hello, err);
    case 1:
        return ty_get_map(&r, &map, err);
    case 2:
        return ty_get_exit(&r, &e, err);
    case 3:
        return ty_get_end_of_job(&r, &end, err);
    case 4:
        ty_get_text(&r, text, sizeof text);
        return ty_get_end(&r, "text", err);
    default:
        while (!r.failed && r.at < r.end)
            ty_get_page(&r, &view);
        return 0;
    }
}

static void as_stranger(const uint8_t *data, size_t size)
{
    static const uint8_t key[TY_LINK_KEY_BYTES] = {7}, nonce[TY_LINK_NONCE_BYTES] = {9};
    ty_link l;
    if (size == 0 || ty_link_init(&l, key, data[0] & 1, nonce, NULL) < 0)
        return;
    for (size_t at = 1; at < size;) {
        size_t piece = data[0] / 2 + 1, n = size - at < piece ? size - at : piece;
        if (ty_link_take(&l, data + at, n, read_message, NULL, NULL) < 0)
            break;
        at += n;
    }
    if (l.state == TY_LINK_OPEN)
        abort(); /* without the secret */
    ty_link_fini(&l);
}

static void carry(ty_link *from, ty_link *to)
{
    if (ty_link_take(to, from->out.data, from->out.len, read_message, NULL, NULL) == 0)
        ty_link_sent(from, from->out.len);
    else
        ty_buf_clear(&from->out);
}

static void as_peer(const uint8_t *data, size_t size)
{
    static const uint8_t key[TY_LINK_KEY_BYTES] = {7};
    ty_link there, here;
    ty_link_init(&there, key, false, NULL, NULL);
    ty_link_init(&here, key, true, NULL, NULL);
    for (int round = 0; round < 2; round++) {
        carry(&there, &here);
        carry(&here, &there);
    }
    if (there.state != TY_LINK_OPEN || here.state != TY_LINK_OPEN)
        abort();
    while (size >= 3 && here.state == TY_LINK_OPEN) {
        size_t n = (size_t)(data[1] | data[2] << 8);
        n = n < size - 3 ? n : size - 3;
        ty_link_send(&there, data[0], data + 3, n, NULL);
        carry(&there, &here);
        data += 3 + n;
        size -= 3 + n;
    }
    ty_link_fini(&there);
    ty_link_fini(&here);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    if (data[0] & 1)
        as_peer(data + 1, size - 1);
    else
        as_stranger(data + 1, size - 1);
    return 0;
}
