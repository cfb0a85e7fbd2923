/* doing.c - see doing.h. */
#include "entrypoint/doing.h"

#include "dist/mishap.h"
#include "dist/page.h"

enum { DOING_GPUS = TY_PAGE_STREAMS - 1 }; /* the stream of waits on GPUs; comms take the first ones */

static ty_page *page;    /* of this process; NULL: nobody watches */
static uint64_t n_waits; /* on GPUs */
static ty_mishap mishap; /* a fault that somebody asked for */
static bool mishap_is_known;

static const ty_phase doing_phases[TY_N_DOINGS] = {
    [TY_DOING_START] = TY_PHASE_START,       [TY_DOING_COMPILE] = TY_PHASE_COMPILE,   [TY_DOING_DATA] = TY_PHASE_DATA,
    [TY_DOING_STEP] = TY_PHASE_STEP,         [TY_DOING_EVALUATE] = TY_PHASE_EVALUATE, [TY_DOING_SAVE] = TY_PHASE_SAVE,
    [TY_DOING_FINISHED] = TY_PHASE_FINISHED, [TY_DOING_SERVE] = TY_PHASE_SERVE};

void ty_doing_open(void)
{
    page = ty_page_from_environment();
    ty_page_phase(page, TY_PHASE_START);
}

void ty_doing_now(ty_doing what)
{
    ty_page_phase(page, doing_phases[what]);
}

void ty_doing_step(int64_t step)
{
    ty_page_step(page, step);
    if (!mishap_is_known)
        ty_mishap_from_environment(&mishap);
    mishap_is_known = true;
    ty_mishap_meet(&mishap, step);
}

void ty_doing_waits(const char *what)
{
    if (what)
        ty_page_begin(page, DOING_GPUS, ++n_waits, what, "", -1, 0);
    else
        ty_page_end(page, DOING_GPUS);
}

void ty_doing_failed(const char *text)
{
    ty_page_error(page, text);
}

/* A checkpoint that is half written may still become whole. */
bool ty_doing_is_over(void)
{
    ty_page_view view;
    if (!ty_page_is_aborted(page))
        return false;
    ty_page_read(page, &view);
    return view.phase != TY_PHASE_SAVE;
}

struct ty_page *ty_doing_page(void)
{
    return page;
}

void ty_doing_close(void)
{
    ty_page_close(page);
    page = NULL;
}
