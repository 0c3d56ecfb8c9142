import oneflow as flow
from shown import show

n = flow.arange(64, dtype=flow.float32)
signal = flow.sin(n * 0.3) + 0.5 * flow.cos(n * 0.7)
spectrum = flow.stft(signal, n_fft=16, hop_length=8, window=flow.hann_window(16), return_complex=False)
show("shape", spectrum.shape)
magnitude = (spectrum**2).sum(dim=-1)
show("magnitude", magnitude.sum(dim=-1))
frames = signal.unfold(0, 16, 8)
show("energy", frames.pow(2).mean(dim=1))
