/* Functions of real numbers, without a library: computed in double, rounded once. */
#ifndef MIZZEN_FUNCTIONS_H
#define MIZZEN_FUNCTIONS_H

float mz_exponential(float value);
float mz_logarithm(float value);
float mz_tanh(float value);
float mz_sigmoid(float value);
float mz_square_root(float value);
float mz_inverse_square_root(float value);
float mz_error_function(float value);
/* e^value - 1. */
float mz_exponential_less_one(float value);
/* ln(1 + value). */
float mz_logarithm_of_one_and(float value);
/* ln(value) times a factor. */
float mz_scaled_logarithm(float value, double factor);
float mz_sine(float value);
float mz_cosine(float value);
/* Towards 0. */
float mz_truncate(float value);
float mz_floor(float value);
float mz_ceiling(float value);
/* Half to even. */
float mz_round(float value);

/* 1 over the root of a positive number. */
double mz_inverse_root(double value);

#endif
