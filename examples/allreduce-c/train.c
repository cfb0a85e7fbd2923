/* Softmax regression on handwritten digits, by any number of processes: train TRAIN.csv TEST.csv CHECKPOINT [EPOCHS]
 *
 * Every rank reads all data and takes its part of the rows of each batch. Gradients and the loss are sums over rows,
 * added up over ranks and divided by the rows of the whole batch, so that any number of ranks trains to the same
 * weights. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trainyard/trainyard.h>

enum { PIXELS = 64, CLASSES = 10, BATCH = 64, MAX_ROWS = 4096 };
static const float LEARNING_RATE = 0.5f;

typedef struct data {
    int rows, label[MAX_ROWS];
    float pixel[MAX_ROWS][PIXELS];
} data;

static struct state { /* what a checkpoint holds */
    int64_t epoch;
    float weight[CLASSES * PIXELS], bias[CLASSES];
} model;

static data train, test;

static void check(int code)
{
    if (code < 0) {
        fprintf(stderr, "%s\n", trainyard_error());
        exit(1);
    }
}

/* 64 pixels from 0 to 16 and the digit, a row a line. */
static void read_csv(const char *path, data *d)
{
    FILE *f = fopen(path, "r");
    for (; f && d->rows < MAX_ROWS; d->rows++) {
        for (int k = 0; k < PIXELS; k++)
            if (fscanf(f, "%f,", &d->pixel[d->rows][k]) != 1)
                goto end;
            else
                d->pixel[d->rows][k] /= 16;
        if (fscanf(f, "%d", &d->label[d->rows]) != 1)
            goto end;
    }
end:
    if (f)
        fclose(f);
    if (d->rows == 0)
        fprintf(stderr, "%s: no rows\n", path), exit(1);
}

/* Probabilities of a row; returns the most probable class. */
static int predict(const float *x, float p[CLASSES])
{
    float sum = 0;
    int best = 0;
    for (int c = 0; c < CLASSES; c++) {
        p[c] = model.bias[c];
        for (int k = 0; k < PIXELS; k++)
            p[c] += model.weight[c * PIXELS + k] * x[k];
        best = p[c] > p[best] ? c : best;
    }
    float top = p[best];
    for (int c = 0; c < CLASSES; c++)
        sum += p[c] = expf(p[c] - top);
    for (int c = 0; c < CLASSES; c++)
        p[c] /= sum;
    return best;
}

/* Adds up over these rows: gradients, and the loss. */
static void backward(const data *d, int from, int to, float *weight, float *bias, double *loss)
{
    memset(weight, 0, sizeof model.weight);
    memset(bias, 0, sizeof model.bias);
    for (int i = from; i < to; i++) {
        float p[CLASSES];
        predict(d->pixel[i], p);
        *loss -= log(p[d->label[i]]);
        p[d->label[i]] -= 1;
        for (int c = 0; c < CLASSES; c++) {
            bias[c] += p[c];
            for (int k = 0; k < PIXELS; k++)
                weight[c * PIXELS + k] += p[c] * d->pixel[i][k];
        }
    }
}

/* Right answers among the rows of the test data that are this rank's, then of all ranks. */
static double evaluate(int rank, int size)
{
    double right = 0;
    for (int i = rank; i < test.rows; i += size) {
        float p[CLASSES];
        right += predict(test.pixel[i], p) == test.label[i];
    }
    check(trainyard_allreduce(trainyard_f64(&right, 1), NULL, trainyard_with(.op = TRAINYARD_SUM, .name = "right")));
    return right / test.rows;
}

/* One pass over the training data, in an order that is the same on all ranks. Returns the mean loss of all rows. */
static double train_epoch(trainyard_gradients *g, int rank, int size)
{
    float *weight = trainyard_gradients_buffer(g, 0), *bias = trainyard_gradients_buffer(g, 1);
    double loss = 0;
    for (int at = 0; at < train.rows && !trainyard_stop_requested(); at += BATCH) {
        int rows = train.rows - at < BATCH ? train.rows - at : BATCH;
        backward(&train, at + rows * rank / size, at + rows * (rank + 1) / size, weight, bias, &loss);
        check(trainyard_gradients_ready(g, 1, NULL)); /* they lie in their buffers already */
        check(trainyard_gradients_ready(g, 0, NULL));
        check(trainyard_gradients_wait(g));
        for (int i = 0; i < CLASSES * PIXELS; i++)
            model.weight[i] -= LEARNING_RATE * weight[i] / (float)rows;
        for (int c = 0; c < CLASSES; c++)
            model.bias[c] -= LEARNING_RATE * bias[c] / (float)rows;
    }
    check(trainyard_allreduce(trainyard_f64(&loss, 1), NULL, trainyard_with(.op = TRAINYARD_SUM, .name = "loss")));
    return loss / train.rows;
}

/* Goes on where a checkpoint of the same size was left, else starts with zeros, which need not be broadcast. */
static void resume(const char *path)
{
    void *bytes;
    size_t n_bytes;
    check(trainyard_read(path, &bytes, &n_bytes));
    if (n_bytes == sizeof model)
        memcpy(&model, bytes, sizeof model);
    trainyard_free(bytes);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return fprintf(stderr, "usage: train TRAIN.csv TEST.csv CHECKPOINT [EPOCHS]\n"), 2;
    check(trainyard_init(NULL));
    int rank = trainyard_rank(), size = trainyard_size(), epochs = argc > 4 ? atoi(argv[4]) : 10;
    read_csv(argv[1], &train);
    read_csv(argv[2], &test);
    resume(argv[3]);
    trainyard_parameter parameters[] = {{"weight", TRAINYARD_F32, 2, {CLASSES, PIXELS}},
                                        {"bias", TRAINYARD_F32, 1, {CLASSES}}};
    trainyard_gradients *g;
    check(trainyard_gradients_new(parameters, 2, &(trainyard_gradients_options){.op = TRAINYARD_SUM}, &g));
    while (model.epoch < epochs && !trainyard_stop_requested()) {
        double loss = train_epoch(g, rank, size);
        if (trainyard_stop_requested())
            break; /* in the middle of an epoch: the checkpoint of the last whole one stays */
        double values[] = {loss, evaluate(rank, size)};
        model.epoch++;
        check(trainyard_metrics(model.epoch * ((train.rows + BATCH - 1) / BATCH), model.epoch,
                                (const char *[]){"loss", "accuracy"}, values, 2));
        check(trainyard_write(argv[3], &model, sizeof model));
    }
    check(trainyard_shutdown());
    return 0;
}
