// Form fields. A field shows the messages of the Problem whose `errors` name it.
import { createContext, type ReactNode, useContext, useId } from "react";
import { Switch } from "react-aria-components";
import { ApiError } from "../api/client";
import { useT } from "../i18n";

const ErrorsContext = createContext<{ field: string; message: string }[]>([]);

// Provides the errors of the last answer to the fields of a form.
export function FieldErrors({ error, children }: { error: unknown; children: ReactNode }) {
  const errors = error instanceof ApiError ? (error.problem.errors ?? []) : [];
  return <ErrorsContext.Provider value={errors}>{children}</ErrorsContext.Provider>;
}

// Returns the messages for a field without its path, which the label replaces.
export function messagesFor(errors: { field: string; message: string }[], paths: string[]): string[] {
  return errors
    .filter((e) =>
      paths.some(
        (path) => e.field === path || e.field.startsWith(`${path}.`) || e.field.startsWith(`${path}[`),
      ),
    )
    .map((e) => (e.message.startsWith(`${e.field}: `) ? e.message.slice(e.field.length + 2) : e.message));
}

// Lists the errors of fields that the form does not have.
export function OtherErrors({ known }: { known: string[] }) {
  const errors = useContext(ErrorsContext);
  const rest = errors.filter((e) => messagesFor([e], known).length === 0);
  if (rest.length === 0) return null;
  return (
    <ul className="field-errors" role="alert">
      {rest.map((e) => (
        <li key={e.field + e.message}>{e.message}</li>
      ))}
    </ul>
  );
}

interface FieldProps {
  label: string;
  help?: ReactNode;
  paths?: string[]; // The document's fields that this one writes.
  isRequired?: boolean;
  isDisabled?: boolean;
  hidesLabel?: boolean;
}

function Frame({
  label,
  help,
  paths = [],
  isRequired,
  hidesLabel,
  id,
  children,
}: FieldProps & { id: string; children: ReactNode }) {
  const t = useT();
  const messages = messagesFor(useContext(ErrorsContext), paths);
  return (
    <div className={`field${messages.length ? " invalid" : ""}`}>
      <label htmlFor={id} className={hidesLabel ? "hidden-label" : undefined}>
        {label}
        {isRequired && (
          <span className="required" title={t("required")}>
            {" "}
            *
          </span>
        )}
      </label>
      {children}
      {help && (
        <div className="help" id={`${id}-help`}>
          {help}
        </div>
      )}
      {messages.length > 0 && (
        <div className="field-errors" id={`${id}-error`} role="alert">
          {messages.join("; ")}
        </div>
      )}
    </div>
  );
}

function useDescription(id: string, { help, paths = [] }: FieldProps) {
  const isInvalid = messagesFor(useContext(ErrorsContext), paths).length > 0;
  const described = [help ? `${id}-help` : "", isInvalid ? `${id}-error` : ""].filter(Boolean).join(" ");
  return { "aria-describedby": described || undefined, "aria-invalid": isInvalid || undefined };
}

export function TextField(
  props: FieldProps & {
    value: string;
    onChange: (value: string) => void;
    placeholder?: string;
    kind?: "text" | "number" | "password" | "date" | "month";
    size?: "short";
  },
) {
  const id = useId();
  const description = useDescription(id, props);
  return (
    <Frame {...props} id={id}>
      <input
        id={id}
        type={props.kind === "number" ? "text" : (props.kind ?? "text")}
        inputMode={props.kind === "number" ? "decimal" : undefined}
        className={props.size === "short" || props.kind === "number" ? "short" : undefined}
        value={props.value}
        placeholder={props.placeholder}
        required={props.isRequired}
        disabled={props.isDisabled}
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => props.onChange(event.target.value)}
        {...description}
      />
    </Frame>
  );
}

export function TextArea(
  props: FieldProps & {
    value: string;
    onChange: (value: string) => void;
    rows?: number;
    placeholder?: string;
  },
) {
  const id = useId();
  const description = useDescription(id, props);
  return (
    <Frame {...props} id={id}>
      <textarea
        id={id}
        rows={props.rows ?? 3}
        value={props.value}
        placeholder={props.placeholder}
        required={props.isRequired}
        disabled={props.isDisabled}
        spellCheck={false}
        onChange={(event) => props.onChange(event.target.value)}
        {...description}
      />
    </Frame>
  );
}

export interface Option {
  value: string;
  label: string;
  isDisabled?: boolean;
}
export function SelectField(
  props: FieldProps & { value: string; onChange: (value: string) => void; options: Option[] },
) {
  const id = useId();
  const description = useDescription(id, props);
  return (
    <Frame {...props} id={id}>
      <select
        id={id}
        value={props.value}
        disabled={props.isDisabled}
        onChange={(event) => props.onChange(event.target.value)}
        {...description}
      >
        {props.options.map((option) => (
          <option key={option.value} value={option.value} disabled={option.isDisabled}>
            {option.label}
          </option>
        ))}
      </select>
    </Frame>
  );
}

export function Checkbox(props: FieldProps & { value: boolean; onChange: (value: boolean) => void }) {
  const id = useId();
  const description = useDescription(id, props);
  const messages = messagesFor(useContext(ErrorsContext), props.paths ?? []);
  return (
    <div className="field check">
      <div className="check-row">
        <input
          id={id}
          type="checkbox"
          checked={props.value}
          disabled={props.isDisabled}
          onChange={(event) => props.onChange(event.target.checked)}
          {...description}
        />
        <label htmlFor={id}>{props.label}</label>
      </div>
      {props.help && (
        <div className="help" id={`${id}-help`}>
          {props.help}
        </div>
      )}
      {messages.length > 0 && (
        <div className="field-errors" id={`${id}-error`} role="alert">
          {messages.join("; ")}
        </div>
      )}
    </div>
  );
}

export function SwitchField({
  label,
  value,
  onChange,
  help,
  isDisabled,
}: FieldProps & { value: boolean; onChange: (value: boolean) => void }) {
  return (
    <div className="field check">
      <Switch className="switch" isSelected={value} onChange={onChange} isDisabled={isDisabled ?? false}>
        <span className="track" aria-hidden="true" />
        {label}
      </Switch>
      {help && <div className="help">{help}</div>}
    </div>
  );
}

// One choice of a few, each with an explanation.
export function RadioGroup({
  label,
  value,
  onChange,
  options,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  options: { value: string; label: string; help: string }[];
}) {
  const id = useId();
  return (
    <fieldset className="field radios">
      <legend>{label}</legend>
      {options.map((option) => (
        <div key={option.value} className="check-row">
          <input
            type="radio"
            id={id + option.value}
            name={id}
            checked={value === option.value}
            onChange={() => onChange(option.value)}
            aria-describedby={option.help ? `${id}${option.value}-help` : undefined}
          />
          <label htmlFor={id + option.value}>{option.label}</label>
          {option.help && (
            <span className="help" id={`${id}${option.value}-help`}>
              {option.help}
            </span>
          )}
        </div>
      ))}
    </fieldset>
  );
}

export function Range({
  label,
  value,
  min,
  max,
  step,
  onChange,
  text,
}: {
  label: string;
  value: number;
  min: number;
  max: number;
  step: number;
  onChange: (value: number) => void;
  text: string;
}) {
  const id = useId();
  return (
    <div className="field range">
      <label htmlFor={id}>{label}</label>
      <output htmlFor={id}>{text}</output>
      <input
        id={id}
        type="range"
        min={min}
        max={max}
        step={step}
        value={value}
        aria-valuetext={text}
        onChange={(event) => onChange(Number(event.target.value))}
      />
    </div>
  );
}
