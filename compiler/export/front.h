/* front.h - an ONNX file with preprocessing in front of its graph: inputs take what is stored, numbers with holes and
 * texts, and nodes make of it what the model was trained with.
 *
 *     ty_onnx_front x = {.input = "x", .row = field's type, .scale = 1, .shift = mean, .divisor = deviation, .n_stats =
 * 1}; ty_onnx_write_front("model.onnx", "model_with_preprocessing.onnx", &x, 1, &arena, &err);
 *
 * Input "x" is then called "x_raw" and is float64 [batch ...], or text. The file's own nodes, weights and names stay
 * byte for byte as they are. Weights that lie in a second file stay there: the new file belongs beside the old one.
 *
 * The steps of one input, in this order, as Operators.md of https://github.com/onnx/onnx has them:
 *
 *     numbers   Where(IsNaN), Mul, Add, Clip, Log(1 + v), (v - shift) / divisor; computed in float64
 *     buckets   ReduceSum(v >= boundaries)
 *     words     ai.onnx.ml's LabelEncoder; "" is a missing text
 *     one_hot   OneHot
 *     result    Reshape, Cast to the type of the model's input
 *
 * A graph cannot refuse a row. A number that is missing and has no fill stays NaN; a word that is none of its words and
 * has no id, a missing text or number that has none, becomes the first id behind the last one.
 */
#ifndef TY_COMPILER_EXPORT_FRONT_H
#define TY_COMPILER_EXPORT_FRONT_H

#include "base/arena.h"
#include "base/error.h"
#include "base/tensor.h"

#define TY_ONNX_FRONT_MIN_OPSET 13 /* axes are inputs since */

/* How one input is made. Borrowed. Zeroed but for scale: nothing is done. */
typedef struct ty_onnx_front {
    const char *input; /* of the model */
    ty_type row;       /* of one sample, as the model takes it, without the batch */
    bool is_text;      /* words, else numbers */
    int raw_rank;      /* of one sample as it is stored */
    int64_t raw_dim[TY_MAX_RANK];
    /* numbers */
    const double *fill; /* [n_stats or 1]; NULL: none */
    int64_t n_fill;
    double scale, offset;
    bool is_clipped, log1p;
    double low, high;
    const double *shift, *divisor; /* [n_stats]: of each value of a sample, or one for all; NULL: none */
    int64_t n_stats;
    bool has_buckets;
    const double *boundary; /* [n_boundaries], rising */
    int n_boundaries;
    /* words */
    const char *const *word; /* [n_words], each once */
    int64_t n_words;
    int64_t first_id;      /* of word[0] */
    bool has_other;        /* other words have id 0; else first_id + n_words */
    const char *fill_text; /* what a missing text counts as; NULL: none */
    /* ids */
    int64_t one_hot; /* width; 0: none */
} ty_onnx_front;

/* Writes the file, whole or not at all. TY_E_UNSUPPORTED: an operator set before TY_ONNX_FRONT_MIN_OPSET;
 * TY_E_LIMIT: the result would pass protobuf's 2 GiB. */
int ty_onnx_write_front(const char *model, const char *path, const ty_onnx_front *fronts, int n, ty_arena *a,
                        ty_error *err);

#endif
