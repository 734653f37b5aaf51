//! Parameters that are known only at launch, replaced by sample numbers.
//!
//! A law of layouts with parameters must hold for every allowed value of each parameter. It is
//! tested for some of them: the smallest ones, and others of different sizes and divisors.

use tilewright_layout::symbolic::{Parameter, Values};
use tilewright_notation::Value;

/// The largest number of choices of numbers that are tried.
const MOST: usize = 24;

/// Sample numbers for the parameters of these values; None if there are no parameters.
pub fn choices(values: &[&Value]) -> Option<Vec<Values>> {
    let mut parameters: Vec<Parameter> = values.iter().flat_map(|value| value.parameters()).collect();
    parameters.sort();
    parameters.dedup();
    if parameters.is_empty() {
        return None;
    }
    let candidates: Vec<Vec<i64>> = parameters.iter().map(admissible).collect();
    let most = candidates.iter().map(Vec::len).product::<usize>().min(MOST);
    let choice = |number: usize| {
        let mut values = Values::new();
        let mut rest = number;
        for (position, (parameter, numbers)) in parameters.iter().zip(&candidates).enumerate() {
            // In order if all combinations fit; otherwise so that the numbers of the parameters
            // differ.
            let at =
                if most < MOST { rest % numbers.len() } else { (number * (position + 1) + position) % numbers.len() };
            rest /= numbers.len();
            if let Some(value) = numbers.get(at) {
                values.set(parameter, *value);
            }
        }
        values
    };
    Some((0..most).map(choice).collect())
}

/// Some values that the facts of a parameter allow, the smallest ones first.
pub fn admissible(parameter: &Parameter) -> Vec<i64> {
    let facts = parameter.facts();
    let (step, least) = (facts.divisor(), facts.least().unwrap_or(-2 * facts.divisor()));
    let multiples = [0, 1, 2, 3, 4, 5, 7, 11].into_iter();
    let numbers = multiples.filter_map(|multiple: i64| least.checked_add(step.checked_mul(multiple)?));
    numbers.filter(|number| facts.admits(*number)).collect()
}

/// The numbers of a choice as text: `M = 128, K = 3`.
pub fn named(values: &[&Value], choice: &Values) -> String {
    let mut parameters: Vec<Parameter> = values.iter().flat_map(|value| value.parameters()).collect();
    parameters.sort();
    parameters.dedup();
    let named = parameters.iter().filter_map(|parameter| Some(format!("{parameter} = {}", choice.get(parameter)?)));
    named.collect::<Vec<_>>().join(", ")
}

/// Says that the parameters of a value must be set first, with the call that sets them:
/// `substitute((M,4):(4,1), M, 8)`.
///
/// None if the value has no parameters.
///
/// ```
/// use tilewright_draw::explain::launch::unknown;
/// use tilewright_notation::{Environment, evaluate};
///
/// let advice = |source: &str| unknown(source, &evaluate(source, &mut Environment::new()).unwrap());
/// assert_eq!(advice("(M,4):(4,1)").unwrap(), "once M is known: substitute((M,4):(4,1), M, 8)");
/// assert_eq!(advice("(?,4):(4,1)").unwrap(), "once each `?` is replaced by a number");
/// assert_eq!(advice("(8,4):(4,1)"), None);
/// ```
pub fn unknown(source: &str, value: &Value) -> Option<String> {
    let parameters = value.parameters();
    let (named, unnamed): (Vec<_>, Vec<_>) = parameters.iter().partition(|parameter| parameter.name().is_some());
    let number = |parameter: &Parameter| {
        let numbers = admissible(parameter);
        numbers.iter().copied().find(|number| *number >= 8).or_else(|| numbers.first().copied()).unwrap_or(8)
    };
    let names: Vec<String> = named.iter().map(ToString::to_string).collect();
    let all = match names.split_last() {
        Some((last, front)) if !front.is_empty() => format!("{} and {last} are", front.join(", ")),
        Some((only, _)) => format!("{only} is"),
        None => return (!unnamed.is_empty()).then(|| "once each `?` is replaced by a number".to_owned()),
    };
    if !unnamed.is_empty() {
        return Some(format!("once {all} known, and each `?` is replaced by a number"));
    }
    // A program of several statements cannot be an argument; its last expression can.
    let source = if source.contains([';', '\n']) { "..." } else { source.trim() };
    let pairs: String = named.iter().map(|parameter| format!(", {parameter}, {}", number(parameter))).collect();
    Some(format!("once {all} known: substitute({source}{pairs})"))
}
