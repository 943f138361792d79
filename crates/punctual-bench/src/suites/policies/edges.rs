//! Canny's edge detector, as a workload: several passes over an image, with arithmetic and
//! searching.

/// The kernel of the Gaussian blur, σ = 1.4; its weights sum to 1.
const BLUR: [f32; 5] = [0.110_2, 0.236_9, 0.305_8, 0.236_9, 0.110_2];

/// An image of gray values, in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Image<T> {
    width: usize,
    height: usize,
    pixels: Vec<T>,
}

impl<T: Copy> Image<T> {
    pub(super) fn from_fn(width: usize, height: usize, mut pixel: impl FnMut(usize, usize) -> T) -> Self {
        let pixels = (0..width * height).map(|index| pixel(index % width, index / width)).collect();
        Self { width, height, pixels }
    }

    /// Returns a pixel; the border repeats outside of the image.
    pub(super) fn at(&self, x: isize, y: isize) -> T {
        let clamp = |at: isize, len: usize| at.clamp(0, len as isize - 1) as usize;
        self.pixels[clamp(y, self.height) * self.width + clamp(x, self.width)]
    }

    /// Computes every pixel from its neighborhood.
    fn map<U: Copy>(&self, pixel: impl Fn(&Self, isize, isize) -> U) -> Image<U> {
        Image::from_fn(self.width, self.height, |x, y| pixel(self, x as isize, y as isize))
    }
}

/// Marks the edges whose gradient exceeds `high`, followed along gradients above `low`.
pub(super) fn canny(image: &Image<u8>, low: f32, high: f32) -> Image<bool> {
    let weighted =
        |sample: &dyn Fn(isize) -> f32| (-2..).zip(BLUR).map(|(at, weight)| weight * sample(at)).sum();
    let rows = image.map(|image, x, y| -> f32 { weighted(&|dx| f32::from(image.at(x + dx, y))) });
    let blurred = rows.map(|rows, x, y| -> f32 { weighted(&|dy| rows.at(x, y + dy)) });
    let gradients = blurred.map(sobel);
    let ridges = gradients.map(ridge);
    follow(&ridges, low, high)
}

/// Returns the gradient, by Sobel's operator.
fn sobel(image: &Image<f32>, x: isize, y: isize) -> (f32, f32) {
    let column = |dx| image.at(x + dx, y - 1) + 2.0 * image.at(x + dx, y) + image.at(x + dx, y + 1);
    let row = |dy| image.at(x - 1, y + dy) + 2.0 * image.at(x, y + dy) + image.at(x + 1, y + dy);
    (column(1) - column(-1), row(1) - row(-1))
}

/// Returns the length of the gradient where it is a maximum across the edge, 0 elsewhere.
fn ridge(gradients: &Image<(f32, f32)>, x: isize, y: isize) -> f32 {
    let length = |dx: isize, dy: isize| {
        let (gx, gy) = gradients.at(x + dx, y + dy);
        gx.hypot(gy)
    };
    let (gx, gy) = gradients.at(x, y);
    // The tangent of 22.5°: the direction is rounded to that of a neighboring pixel.
    const STEEP: f32 = 0.414_2;
    let dx = if gx.abs() > STEEP * gy.abs() { gx.signum() as isize } else { 0 };
    let dy = if gy.abs() > STEEP * gx.abs() { gy.signum() as isize } else { 0 };
    let own = length(0, 0);
    if own >= length(dx, dy) && own >= length(-dx, -dy) { own } else { 0.0 }
}

/// Returns everything above `low` that is connected to something above `high`.
fn follow(ridges: &Image<f32>, low: f32, high: f32) -> Image<bool> {
    let mut edges = ridges.map(|ridges, x, y| ridges.at(x, y) > high);
    let mut open: Vec<usize> = (0..edges.pixels.len()).filter(|&index| edges.pixels[index]).collect();
    while let Some(index) = open.pop() {
        let (x, y) = (index % ridges.width, index / ridges.width);
        for y in y.saturating_sub(1)..(y + 2).min(ridges.height) {
            for x in x.saturating_sub(1)..(x + 2).min(ridges.width) {
                let neighbor = y * ridges.width + x;
                if !edges.pixels[neighbor] && ridges.pixels[neighbor] > low {
                    edges.pixels[neighbor] = true;
                    open.push(neighbor);
                }
            }
        }
    }
    edges
}
