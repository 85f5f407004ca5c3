/* Functions of real numbers, without a library: computed in double, rounded once. */
#ifndef MIZZEN_FUNCTIONS_H
#define MIZZEN_FUNCTIONS_H

float mz_exponential(float value);
float mz_logarithm(float value);
float mz_tanh(float value);
float mz_sigmoid(float value);
float mz_square_root(float value);
float mz_inverse_square_root(float value);
float mz_floor(float value);
float mz_ceiling(float value);
/* Half to even. */
float mz_round(float value);

#endif
