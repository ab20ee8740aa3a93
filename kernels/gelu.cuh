// GELU in its tanh form: 0.5 y (1 + tanh(k (y + 0.044715 y^3))) is y / (1 + exp(-2 k (y + 0.044715 y^3))): one
// exponential and one division, both short on the card, in place of tanhf, which alone would take longer than the
// memory. The constants are -2 k log2(e) and that times 0.044715, with k = sqrt(2 / pi).
DEVICE float gelu(float y) { return __fdividef(y, 1.f + exp2_of(y * (-2.302208198f - 0.1029432397f * y * y))); }
