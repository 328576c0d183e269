//! The places of labels that would overlap, and the height of a legend. Names are escaped and wrapped, because Plotly reads them
//! as HTML and cuts off long ones.

/// Returns the ends of lines, each with x and y, from the highest to the lowest. Sorting a few of them this way takes less code than
/// `sort_by`.
pub(crate) fn by_height<T>(ends: impl Iterator<Item = (T, f64, f64)>) -> Vec<(T, f64, f64)> {
    let mut sorted: Vec<(T, f64, f64)> = Vec::new();
    for end in ends {
        let place = sorted.iter().position(|other| other.2 < end.2).unwrap_or(sorted.len());
        sorted.insert(place, end);
    }
    sorted
}

/// Returns how many pixels to move each label up, at descending heights, so that the labels don't overlap and stay beside the
/// axis. The axis goes from `bottom` to `top` and is `pixels` high. If there are too many labels, the lowest are below it.
pub(crate) fn label_shifts(heights: &[f64], (bottom, top): (f64, f64), pixels: f64) -> Vec<i32> {
    let place = |height: &f64| (top - height) / (top - bottom).max(f64::MIN_POSITIVE) * pixels;
    let places: Vec<f64> = heights.iter().map(place).collect();
    let mut moved = spread(&places);
    let mut end = pixels;
    for place in moved.iter_mut().rev() {
        *place = place.min(end);
        end = *place - LABEL_HEIGHT;
    }
    let mut start = 0.0;
    for place in &mut moved {
        *place = place.max(start);
        start = *place + LABEL_HEIGHT;
    }
    places.iter().zip(moved).map(|(place, moved)| (place - moved).round() as i32).collect()
}

pub(crate) fn log10(value: f64) -> f64 {
    libm::log10(value.max(f64::MIN_POSITIVE))
}

/// Returns a name escaped for Plotly, which reads names as HTML, and with line breaks: Plotly would cut off
/// the ends of long names, and runs often differ only there.
pub(crate) fn legend_text(name: &str) -> String {
    let mut lines = vec![String::new()];
    for word in name.split_inclusive([' ', '/', '_', '-']) {
        match lines.last_mut() {
            Some(line) if line.is_empty() || line.chars().count() + word.chars().count() <= LEGEND_LINE => {
                *line += word;
            }
            _ => lines.push(word.to_string()),
        }
    }
    escaped(&lines.join("\n")).replace('\n', "<br>")
}

/// Returns a text escaped for Plotly.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns the height in pixels of a legend with these names beside axes of a width, about as Plotly draws it: in columns as
/// wide as the longest name, or as a line of it.
pub(super) fn legend_height<'a>(names: impl Iterator<Item = &'a str> + Clone, width: f64) -> usize {
    const LINE: usize = 20;
    let longest = names.clone().map(|name| name.chars().count()).max().unwrap_or(0);
    let column = 45.0 + 7.5 * longest.min(LEGEND_LINE) as f64;
    let columns = ((width / column) as usize).max(1);
    // In a single column each name takes only its own lines.
    let lines: usize = match columns {
        1 => names.map(|name| 1 + legend_text(name).matches("<br>").count()).sum(),
        _ => names.count().div_ceil(columns) * longest.div_ceil(LEGEND_LINE).max(1),
    };
    LINE * lines
}

/// Returns the places of labels that are [`LABEL_HEIGHT`] apart, as near as possible to the given ascending places: a group
/// of labels that would overlap is spread around its middle.
fn spread(places: &[f64]) -> Vec<f64> {
    // Each group: the sum of the places that its first label should have, and the number of its labels.
    let mut groups: Vec<(f64, usize)> = Vec::new();
    for place in places {
        groups.push((*place, 1));
        while let [.., (upper, above), (lower, below)] = groups[..] {
            let (first, second) = (upper / above as f64, lower / below as f64);
            if first + LABEL_HEIGHT * above as f64 <= second {
                break;
            }
            groups.truncate(groups.len() - 2);
            groups.push((upper + lower - LABEL_HEIGHT * (above * below) as f64, above + below));
        }
    }
    let of_group = |(sum, count): (f64, usize)| {
        (0..count).map(move |index| sum / count as f64 + LABEL_HEIGHT * index as f64)
    };
    groups.into_iter().flat_map(of_group).collect()
}

/// The height of a label, in pixels: about as it is drawn.
const LABEL_HEIGHT: f64 = 18.0;

/// The characters per line of the legend that fit on a narrow page.
pub(super) const LEGEND_LINE: usize = 34;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legend_texts_are_escaped_and_wrapped() {
        assert_eq!(legend_text("<b>&"), "&lt;b&gt;&amp;");
        let name = "pretrain_llama3.1_405b_fp8_512_and_a_long_suffix";
        assert_eq!(legend_text(name), "pretrain_llama3.1_405b_fp8_512_<br>and_a_long_suffix");
    }

    #[test]
    fn labels_are_spread_around_their_middle() {
        assert_eq!(spread(&[0.0, 100.0]), [0.0, 100.0]);
        assert_eq!(spread(&[100.0, 100.0]), [91.0, 109.0]);
        let many = spread(&[10.0, 11.0, 12.0, 13.0, 200.0]);
        assert!(many.windows(2).all(|pair| pair[1] - pair[0] >= LABEL_HEIGHT - 1e-9), "{many:?}");
        assert_eq!(many[4], 200.0);
    }

    #[test]
    fn labels_stay_beside_the_axis() {
        // From the top of an axis of 100 pixels: three at its upper end, one at its lower end.
        assert_eq!(label_shifts(&[10.0, 10.0, 10.0, 0.0], (0.0, 10.0), 100.0), [0, -18, -36, 0]);
        assert_eq!(label_shifts(&[10.0, 0.0, 0.0], (0.0, 10.0), 100.0), [0, 18, 0]);
        assert_eq!(label_shifts(&[1.0, 1.0], (1.0, 1.0), 100.0), [0, -18]);
    }

    #[test]
    fn a_narrow_chart_has_room_for_a_taller_legend() {
        let names = ["Weights", "Gradients", "Optimizer", "Activations", "Logits", "Reserved"];
        let height = |width| legend_height(names.into_iter(), width);
        assert_eq!((height(1000.0), height(300.0), height(50.0)), (20, 60, 120));
        let long = "Published: pretrain_llama3.1_405b_fp8_512, pretrain_llama3.1_405b_fp8_256";
        assert_eq!(legend_height([long, "Planned"].into_iter(), 300.0), 80);
    }
}
