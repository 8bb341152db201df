// Dialogs, menus and messages about finished actions.
import { createContext, type ReactNode, useCallback, useContext, useMemo, useRef, useState } from "react";
import {
  Button as AriaButton,
  Dialog as AriaDialog,
  Heading,
  Menu,
  MenuItem,
  MenuTrigger,
  Modal,
  ModalOverlay,
  Popover,
} from "react-aria-components";
import { ApiError } from "../api/client";
import { useT } from "../i18n";
import { Button, ErrorPanel, type Tone } from "./basics";

export function Dialog({
  title,
  children,
  onClose,
  isWide,
}: {
  title: string;
  children: ReactNode;
  onClose: () => void;
  isWide?: boolean;
}) {
  return (
    <ModalOverlay className="overlay" isOpen isDismissable onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Modal className={`modal${isWide ? " wide" : ""}`}>
        <AriaDialog className="dialog">
          <Heading slot="title">{title}</Heading>
          {children}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}

interface Confirmation {
  title: string;
  children: ReactNode;
  verb: string;
  isDangerous?: boolean;
  act: () => Promise<unknown>;
  onClose: () => void;
}

// Names what will change and starts it only when the user confirms. A refusal is shown in the dialog.
export function ConfirmDialog({ title, children, verb, isDangerous, act, onClose }: Confirmation) {
  const t = useT();
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const confirm = async () => {
    setBusy(true);
    setError(null);
    try {
      await act();
      onClose();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="dialog-body">
        {children}
        <ErrorPanel error={error} />
      </div>
      <div className="dialog-actions">
        <Button onClick={onClose}>{t("Cancel")}</Button>
        <Button kind={isDangerous ? "danger" : "primary"} disabled={isBusy} onClick={() => void confirm()}>
          {verb}
        </Button>
      </div>
    </Dialog>
  );
}

export interface MenuAction {
  id: string;
  label: string;
  act: () => void;
  isDisabled?: boolean;
}
export function ActionMenu({
  label,
  actions,
  kind = "plain",
}: {
  label: string;
  actions: MenuAction[];
  kind?: "plain" | "quiet";
}) {
  return (
    <MenuTrigger>
      <AriaButton className={`button ${kind}`}>
        {label} <span aria-hidden="true">▾</span>
      </AriaButton>
      <Popover className="popover" placement="bottom end">
        <Menu
          className="menu"
          disabledKeys={actions.filter((a) => a.isDisabled).map((a) => a.id)}
          onAction={(key) => actions.find((a) => a.id === key)?.act()}
        >
          {actions.map((action) => (
            <MenuItem key={action.id} id={action.id} className="menu-item">
              {action.label}
            </MenuItem>
          ))}
        </Menu>
      </Popover>
    </MenuTrigger>
  );
}

interface Toast {
  id: number;
  tone: Tone;
  text: string;
}
const ToastContext = createContext<(tone: Tone, text: string) => void>(() => {});
const toast_ms = 6000;

export function ToastProvider({ children }: { children: ReactNode }) {
  const t = useT();
  const [toasts, setToasts] = useState<Toast[]>([]);
  const next = useRef(1);
  const remove = useCallback((id: number) => setToasts((all) => all.filter((toast) => toast.id !== id)), []);
  const show = useCallback(
    (tone: Tone, text: string) => {
      const id = next.current++;
      setToasts((all) => [...all.slice(-3), { id, tone, text }]);
      if (tone !== "bad") setTimeout(() => remove(id), toast_ms);
    },
    [remove],
  );
  return (
    <ToastContext.Provider value={show}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {toasts.map((toast) => (
          <div key={toast.id} className={`toast ${toast.tone}`}>
            <span>{toast.text}</span>
            <button
              type="button"
              className="close"
              aria-label={t("Close message")}
              onClick={() => remove(toast.id)}
            >
              ×
            </button>
          </div>
        ))}
      </div>
    </ToastContext.Provider>
  );
}

export const useToast = () => useContext(ToastContext);

export const messageOf = (error: unknown) =>
  error instanceof ApiError
    ? [error.problem.detail, ...error.problem.reasons].join("\n")
    : error instanceof Error
      ? error.message
      : String(error);

// Runs an action and shows its result as a message.
export function useAction() {
  const show = useToast();
  const [isBusy, setBusy] = useState(false);
  const run = useCallback(
    async (act: () => Promise<unknown>, done: string) => {
      setBusy(true);
      try {
        await act();
        show("ok", done);
        return true;
      } catch (error) {
        show("bad", messageOf(error));
        return false;
      } finally {
        setBusy(false);
      }
    },
    [show],
  );
  return useMemo(() => ({ run, isBusy }), [run, isBusy]);
}
