/* Floating-point registers survive interrupts whose handler uses them all. */
#include "npu.h"

static volatile uint32_t ends;
static volatile float noise = 3.5f;

void board_npu_interrupt(void)
{
    float a = noise, b = noise * 2.0f, c = noise * 3.0f, d = noise * 4.0f;
    npu_clear();
    __asm__ volatile("vmov.f32 s0, %0\n\tvmov.f32 s1, %0\n\tvmov.f32 s2, %0\n\tvmov.f32 s3, %0\n\t"
                     "vmov.f32 s4, %0\n\tvmov.f32 s5, %0\n\tvmov.f32 s6, %0\n\tvmov.f32 s7, %0\n\t"
                     :
                     : "t"(a)
                     : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7");
    noise = a + b * c - d;
    noise = 3.5f;
    ends++;
}

int main(void)
{
    float sum = 0.0f, product = 1.0f, last = 0.0f;
    int i;
    int failures = npu_reset();
    npu_point_to_transfer();
    board_npu_interrupt_enable();
    for (i = 1; i <= 100; i++) {
        sum += (float)i;
        product = product * 1.5f - 0.25f;
        last = product;
        npu_start();
        product = last * 0.5f;
    }
    board_write("sum ");
    board_write_decimal((int32_t)sum);
    board_write(", product in thousandths ");
    board_write_decimal((int32_t)(product * 1000.0f));
    board_write(", ends ");
    board_write_decimal((int32_t)ends);
    board_write("\n");
    failures += sum == 5050.0f && ends == 100u ? 0 : 1;
    return finish(failures);
}
